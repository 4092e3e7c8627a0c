"""Reads a group periodically, votes on its number of processes, and serves the newest vote."""
