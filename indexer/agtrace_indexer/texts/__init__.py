"""The searchable texts as the index keeps them, cut up and compressed: blocks, pieces and words."""
