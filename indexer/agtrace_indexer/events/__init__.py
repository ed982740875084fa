"""Events as they come out of a log, before they are stored: what they are, what they say, what identifies them."""
