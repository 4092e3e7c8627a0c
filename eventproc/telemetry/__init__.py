"""Metrics and spans through OpenTelemetry; the only package that imports ``opentelemetry``."""

from eventproc._base import public_names as _public_names
from eventproc.telemetry._reporting import Telemetry

__all__ = ["Telemetry"]

_public_names.set_module(__name__, globals())
