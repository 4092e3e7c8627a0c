"""Fleets: processors that run on Spark's executors."""

from spark_integration.fleet.fleet import Fleet

__all__ = ["Fleet"]
