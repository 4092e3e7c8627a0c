"""The same handlers and checkpoints inside Spark structured streaming."""
