"""The health of processors over HTTP, for probes, Prometheus and operators."""

from eventproc.health.server import HealthServer

__all__ = ["HealthServer"]
