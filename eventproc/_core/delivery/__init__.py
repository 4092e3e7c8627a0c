"""Decisions of delivery: which events are handled, what is stored, what follows a failure."""
