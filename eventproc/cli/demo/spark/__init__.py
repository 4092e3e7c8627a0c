"""``eventproc demo-spark``: a handler and an aggregate on Spark."""
