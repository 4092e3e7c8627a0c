"""Metrics and spans through OpenTelemetry; the only package that imports ``opentelemetry``."""

from eventproc._base import public as _public
from eventproc.telemetry._reporting import Telemetry

__all__ = ["Telemetry"]

_public.set_module(__name__, globals())
