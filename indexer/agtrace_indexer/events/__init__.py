"""Events as they come out of a log, before they are stored: their kinds, their texts, their identities."""
