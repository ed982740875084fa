"""The searchable texts as the index stores them, divided and compressed: blocks, pieces and words."""
