"""The settings of a ``ResourceProcessor``."""

from dataclasses import dataclass
from datetime import timedelta

from eventproc._base.settings import PositiveSpan
from eventproc._core.placement.published import measured_by
from eventproc._group.config import GroupConfig
from eventproc.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceProcessorConfig(GroupConfig):
    """Every setting of a ``ResourceProcessor``.

    All processors of a group should have the same ``ownership_expiration``: for that long, the
    resources of a processor that crashed have no holder.
    """

    __module__ = "eventproc"

    failover_timeout: PositiveSpan | None = timedelta(minutes=5)
    """A resource whose ``hold`` has failed or returned for this long, however often it was called
    again, goes to another processor, if there is one. A call that lasted for
    ``handler_backoff.maximum`` counts as a success. ``None``: it stays here."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; each error names the remedy."""
        super(ResourceProcessorConfig, self).__post_init__()
        if measured_by(self.placement) is not None:
            raise ConfigurationError(
                "the load of a resource is not measured: use this placement for partitions, and "
                "share resources by count or by weight",
                setting="placement",
                value=self.placement.name,
            )
