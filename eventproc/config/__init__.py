"""The settings of processors: frozen dataclasses, checked when they are built."""

from eventproc.config.events import (
    CheckpointPolicy,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    RecreatedHub,
    partition_key_of,
)
from eventproc.config.group import REBALANCE_INTERVAL, GroupConfig, Weight
from eventproc.config.resources import ResourceProcessorConfig
from eventproc.retries import Backoff

__all__ = [
    "REBALANCE_INTERVAL",
    "Backoff",
    "CheckpointPolicy",
    "EventProcessorConfig",
    "FailureAction",
    "FailurePolicy",
    "GroupConfig",
    "RecreatedHub",
    "ResourceProcessorConfig",
    "Weight",
    "partition_key_of",
]
