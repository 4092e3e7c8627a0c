"""Small HTTP servers for operators and probes: what ``--http`` serves."""
