"""``--workers N``: a supervisor, and the processes that it starts and restarts."""
