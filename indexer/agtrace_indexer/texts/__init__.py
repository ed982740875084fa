"""The searchable texts as the index keeps them, and what finds them: blocks, the word index, its vocabulary."""
