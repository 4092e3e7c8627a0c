"""Metrics and spans, through OpenTelemetry, whose only importer this package is."""

from eventproc.telemetry.batches import count_batch
from eventproc.telemetry.reporting import Telemetry, Watch, global_telemetry

__all__ = ["Telemetry", "Watch", "count_batch", "global_telemetry"]
