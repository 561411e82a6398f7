"""What andon remembers: one SQLite file, one thread that writes it, plain functions over SQLAlchemy Core."""
