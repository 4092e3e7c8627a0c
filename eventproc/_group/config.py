"""The settings of a member of a group, whatever the group shares: partitions or resources."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Final, TypeAlias

from eventproc._base.retries import Backoff
from eventproc._base.settings import (
    Count,
    PositiveSpan,
    Span,
    Wanted,
    Within,
    check_settings,
    value_text,
)
from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import Placement
from eventproc.errors import ConfigurationError
from eventproc.models import LoadBalancingStrategy

INTERVALS_PER_EXPIRATION_MIN: Final = 3
"""The least ``ownership_expiration``, in units of ``load_balancing_interval``. Azure's
troubleshooting guides recommend the same."""

REBALANCE_INTERVAL: Final = timedelta(milliseconds=250)

Weight: TypeAlias = Annotated[float, Within(above=0), Wanted("a positive number")]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The settings that ``EventProcessorConfig`` and ``ResourceProcessorConfig`` have in common."""

    load_balancing_strategy: LoadBalancingStrategy = LoadBalancingStrategy.COOPERATIVE
    """How partitions move to their planned owner. ``COOPERATIVE``: the present owner drains a
    partition and hands it over. ``GREEDY``: the planned owner steals, one partition in each cycle,
    and claims all free ones at once. ``BALANCED``: one claim or steal in each cycle. ``RELEASE``:
    as ``COOPERATIVE``, but an owner releases a partition, and the planned owner claims it."""

    placement: Placement = field(default_factory=Even)
    """Which processor should have which partition: see ``docs/placement.md``. All processors of a
    group should have the same; until then, the group follows the one that most of them have."""

    weight: Weight = 1.0
    """This processor's share relative to the others, with the placement ``Weighted``."""

    capacity: Count | None = None
    """The most partitions that this processor takes, with the placement ``Weighted``. If the
    capacities of all processors are too small, partitions stay without an owner, and each processor
    logs ``capacity_short``."""

    ordinal: Annotated[int, Within(least=0)] | None = None
    """This processor's number, with the placement ``Ordinal``. ``None``: the number at the end of
    ``owner_id``, if it has one."""

    load_balancing_interval: PositiveSpan = timedelta(seconds=10)
    """Time between two polls of a balanced group. 10 s as in the Azure SDKs for Java, JavaScript
    and Go."""

    rebalance_interval: PositiveSpan = REBALANCE_INTERVAL
    """Time between two polls while a rebalance concerns this processor."""

    ownership_expiration: PositiveSpan = timedelta(seconds=60)
    """A record that was not written for this long has no live owner."""

    handoff_timeout: PositiveSpan = timedelta(seconds=30)
    """How long an owner may take to hand a partition over before its planned owner steals it."""

    shutdown_timeout: PositiveSpan = timedelta(seconds=30)
    """The time for ``stop()``, and to hand a partition over. A stop cancels no call of the handler
    that takes up to a third of it: the rest is for other members to notice the leave, for the
    handler's ``close``, and for the last writes. For each longer call that it cancels,
    ``handler_cancelled`` is logged; the events are delivered again."""

    drain_delay: Span | None = None
    """How long a processor goes on serving after ``stop()`` announced that it leaves. In that time
    the other members read this, and begin to poll every ``rebalance_interval``, so that they take
    its partitions over quickly. ``None``: as long as the others need to read it, at most a third of
    ``shutdown_timeout``; with a store that sends notifications, ``rebalance_interval``. It is never
    longer than half of ``shutdown_timeout``. Without other members there is no delay."""

    deployment_id: str = ""
    """The deployment that this processor belongs to: a version, an image tag. A processor that
    starts while members of another deployment are there is a standby until one of them leaves, and
    takes over that one's partitions, so a rolling deployment moves each partition once. Empty: the
    processor takes its share at once."""

    standby_timeout: PositiveSpan = timedelta(minutes=5)
    """How long a processor is a standby. After that it takes its share in any case, as a canary
    should."""

    static_membership: bool = False
    """Whether ``stop()`` keeps the partitions for this processor's next start under the same
    ``owner_id``, so that a restart moves no partition. They are not served in between. Other
    members take them over if it does not start within ``ownership_expiration``. Needs an
    ``owner_id``."""

    handler_backoff: Backoff = field(default_factory=Backoff)
    """The waits before the handler is called again after it failed."""

    uses_store_thread: bool = True
    """Whether the store and the renewals have a thread of their own, so that a handler that blocks
    the event loop does not delay them. ``False`` only for tests on virtual time."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot work; each error names the remedy."""
        check_settings(self)
        least_s = INTERVALS_PER_EXPIRATION_MIN * self.load_balancing_interval.total_seconds()
        if self.ownership_expiration.total_seconds() < least_s:
            raise ConfigurationError(
                f"give at least {INTERVALS_PER_EXPIRATION_MIN} intervals, that is {least_s:g} s: a "
                "processor that misses one poll must not count as dead",
                setting="ownership_expiration",
                value=value_text(self.ownership_expiration),
                beside={"load_balancing_interval": value_text(self.load_balancing_interval)},
            )
        if self.rebalance_interval > self.load_balancing_interval:
            raise ConfigurationError(
                "give at most as long",
                setting="rebalance_interval",
                value=value_text(self.rebalance_interval),
                beside={"load_balancing_interval": value_text(self.load_balancing_interval)},
            )
        if self.placement.needs_leader:
            name = self.placement.name
            raise ConfigurationError(
                "it depends on what each processor measures, so one of them has to compute it for "
                f"all: use Published({name}), as text Published:{name}",
                setting="placement",
                value=name,
            )
        self._check_use()
        if self.deployment_id and not self.placement.admits_standby:
            raise ConfigurationError(
                "no processor can wait on standby for the share of another one, because this "
                "placement admits none. Leave the first out, or use another placement",
                setting="deployment_id",
                value=repr(self.deployment_id),
                beside={"placement": self.placement.name},
            )

    def _check_use(self) -> None:
        """Refuse a weight, a capacity or an ordinal that the placement does not use."""
        of_weights, of_ordinals = self.placement.uses_weights, self.placement.uses_ordinals
        for name, default, other, is_used in (
            ("weight", 1, "Weighted", of_weights),
            ("capacity", None, "Weighted", of_weights),
            ("ordinal", None, "Ordinal", of_ordinals),
        ):
            value = getattr(self, name)
            if value != default and not is_used:
                raise ConfigurationError(
                    f"only the placement {other} uses it: give that placement, or leave the {name} "
                    "out",
                    setting=name,
                    value=f"{value:g}",
                    beside={"placement": self.placement.name},
                )
