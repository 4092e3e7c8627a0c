"""Process partitioned event streams with a fleet of equal processes."""
