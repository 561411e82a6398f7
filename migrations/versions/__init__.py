"""One file a step. A step never changes once released, and never reads tables.py, which does."""
