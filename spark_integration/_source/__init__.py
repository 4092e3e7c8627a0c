"""The source: reads a hub in batches and in streams."""
