"""Stores for a group's ownership, members and checkpoints: memory, SQLite, Azure Blob Storage."""
