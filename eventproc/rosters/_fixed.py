"""``FixedRoster``: the members are known beforehand."""

from collections.abc import Collection
from datetime import timedelta

from eventproc._base.settings import Span, checked
from eventproc.errors import ConfigurationError
from eventproc.ports import Roster


class FixedRoster(Roster):
    """Names the members of a group that are always the same, such as machines with fixed names.

    Args:
        owner_ids: of all members.
        own_id: the one of this process, unless the processor gets it as ``owner_id``.
        patience: for how long the share of a member that has not come yet is left to it.

    Raises:
        ConfigurationError: *own_id* is not one of them, or there is none.
    """

    interval = timedelta(days=1)
    """The members do not change."""

    @checked
    def __init__(
        self,
        owner_ids: Collection[str],
        *,
        own_id: str | None = None,
        patience: Span = timedelta(seconds=30),
    ) -> None:
        self._owner_ids = frozenset(owner_ids)
        if not self._owner_ids or own_id not in {None, *self._owner_ids}:
            raise ConfigurationError(
                f"own_id is {own_id!r}, and owner_ids are {sorted(self._owner_ids)}: name all "
                "members of the group, this process included"
            )
        self.own_id = own_id
        self.patience = patience

    async def owner_ids(self) -> frozenset[str]:
        """Return the members as given."""
        return self._owner_ids
