"""Reads a group again and again, votes on its number of processes, and serves the votes."""
