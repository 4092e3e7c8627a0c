"""Receive events from a link that Azure's client opened, with a frame parser of our own."""
