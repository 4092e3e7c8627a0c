"""``Published``: one member computes the plan of another placement, and all follow it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from eventproc._core.placement.by_load import ByLoad
from eventproc._core.placement.placement import Backups, GroupState, MemberFacts, Order, Placement
from eventproc.errors import ConfigurationError

PREFIX: Final = "Published:"
"""What the name of every published placement begins with."""


@dataclass(frozen=True)
class Unavailable(Placement):
    """A placement that this processor knows only by name; another member computes its plans."""

    text: str

    @property
    def name(self) -> str:
        """The name that the others know it by."""
        return self.text

    def order(self, state: GroupState) -> Order:
        """Never called: a processor without the placement is not the leader."""
        raise NotImplementedError(self.text)


@dataclass(frozen=True)
class Published(Placement):
    """A leader computes the plan of *inner*, and publishes it in a record with a rising number.

    Only one member computes, so *inner* may be any placement: one that is not the same on every
    machine, or whose plan changes while it is carried out. Members that do not have it follow, too.
    The leader needs no lease: ``_core/ownership/published_plans.py`` says which member it is.
    """

    __module__ = "eventproc"

    inner: Placement
    admits_foreign: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check that there is something to publish, and take over what *inner* says of itself.

        Raises:
            ConfigurationError: *inner* is no placement, or is published itself.
        """
        if isinstance(self.inner, Published) or not isinstance(self.inner, Placement):
            raise ConfigurationError(
                f"Published needs the placement that its leader computes, as Published(Even()): "
                f"{self.inner!r} is not one"
            )
        for name in ("is_sticky", "admits_standby", "uses_weights", "uses_ordinals"):
            object.__setattr__(self, name, getattr(self.inner, name))

    @property
    def name(self) -> str:
        """``Published:`` and the name of *inner*."""
        return PREFIX + self.inner.name

    @property
    def can_lead(self) -> bool:
        """Whether this processor can compute the plan."""
        return not isinstance(self.inner, Unavailable)

    def quotas(self, state: GroupState) -> dict[str, int | None]:
        """Return the quotas of *inner*."""
        return dict(self.inner.quotas(state))

    def order(self, state: GroupState) -> Order:
        """Return the order of *inner*."""
        return self.inner.order(state)

    def backups_of(self, state: GroupState, planned: Mapping[str, str]) -> Backups | None:
        """Return the backups of *inner*, which each member computes from the plan."""
        return self.inner.backups_of(state, planned)

    def check(self, me: MemberFacts) -> None:
        """Check what *inner* needs."""
        self.inner.check(me)


def measured_by(placement: Placement | None) -> str | None:
    """Return what processors have to measure for a placement: see ``ByLoad.by``."""
    inner = placement.inner if isinstance(placement, Published) else None
    return inner.by if isinstance(inner, ByLoad) else None
