"""The pages of `agtrace open`: sessions, conversations and costs as HTML, made from the index at one moment."""
