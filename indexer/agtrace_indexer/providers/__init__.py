"""The agents whose logs are read: a package each, which offers what `drafts.LogFormat` asks for."""
