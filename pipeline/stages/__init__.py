"""The stages of a message's life, one verb a file, in the order of the diagram in README.md."""
