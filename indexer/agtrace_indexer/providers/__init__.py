"""The agents whose logs are read, in a package each: what `provider` describes."""
