"""The schema's history, as an Alembic environment inside the package. Run by pipeline/store/schema.py."""
