"""Metrics and spans through OpenTelemetry; the only package that imports ``opentelemetry``."""

from eventproc.telemetry.batches import count_batch
from eventproc.telemetry.reporting import Telemetry, Watch, global_telemetry

__all__ = ["Telemetry", "Watch", "count_batch", "global_telemetry"]
