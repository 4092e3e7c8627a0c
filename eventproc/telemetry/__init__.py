"""Metrics and spans through OpenTelemetry; the only package that imports ``opentelemetry``."""

from eventproc._base import public as _public
from eventproc.telemetry._batches import count_batch
from eventproc.telemetry._reporting import Instrumentation, Telemetry, global_telemetry

__all__ = ["Instrumentation", "Telemetry", "count_batch", "global_telemetry"]

_public.set_module(__name__, globals())
