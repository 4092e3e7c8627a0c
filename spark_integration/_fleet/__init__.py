"""Fleets: processors that run on Spark's executors."""
