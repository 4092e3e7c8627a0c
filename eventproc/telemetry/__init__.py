"""Metrics and spans through OpenTelemetry; the only package that imports ``opentelemetry``."""

from eventproc._base.public import set_public_module
from eventproc.telemetry._batches import count_batch
from eventproc.telemetry._reporting import Instrumentation, Telemetry, global_telemetry

__all__ = ["Instrumentation", "Telemetry", "count_batch", "global_telemetry"]

set_public_module(__name__, globals())
