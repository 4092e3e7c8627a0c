"""``eventproc demo``: the whole product at work on one machine, checked against the plain truth."""
