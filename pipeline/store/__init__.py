"""What andon remembers: one SQLite file, written by one thread, through plain functions over SQLAlchemy Core."""
