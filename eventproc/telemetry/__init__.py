"""Metrics and spans, through OpenTelemetry, whose only importer this package is."""

from eventproc.telemetry.reporting import Telemetry, Watch, global_telemetry

__all__ = ["Telemetry", "Watch", "global_telemetry"]
