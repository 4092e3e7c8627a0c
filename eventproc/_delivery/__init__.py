"""Serving one partition: receive, call the handler, checkpoint, stop."""
