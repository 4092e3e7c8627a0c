"""``eventproc demo``: a group of processors."""
