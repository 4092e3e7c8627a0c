"""Stores for the records of consumer groups: memory, SQLite, PostgreSQL, Azure blobs and tables."""
