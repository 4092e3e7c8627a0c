"""Metrics and spans through OpenTelemetry; the only package that imports ``opentelemetry``."""

from eventproc.telemetry.batches import count_batch
from eventproc.telemetry.reporting import Instrumentation, Telemetry, global_telemetry

__all__ = ["Instrumentation", "Telemetry", "count_batch", "global_telemetry"]
