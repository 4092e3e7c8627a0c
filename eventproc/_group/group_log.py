"""Logs what has changed in a group from one poll to the next."""

import math

from eventproc._base.logs import ConditionLogger, Logger
from eventproc._core.ownership.cycle import Actions
from eventproc._core.ownership.group import Group
from eventproc._core.ownership.liveness import renewal_interval
from eventproc._core.ownership.memory import GroupMemory, was_silent
from eventproc._core.ownership.rules import Rules


class GroupLog:
    """Logs changes of a group that operators should know of."""

    def __init__(self, rules: Rules, log: Logger) -> None:
        self._rules = rules
        self._log = log
        self._silence = ConditionLogger(log, "group_read_again", "group_read_in_time")
        self._short_capacity = ConditionLogger(log, "capacity_short", "capacity_sufficient")
        self._short_expiration = ConditionLogger(log, "expiration_short", "expiration_sufficient")
        self._unknown_placement = ConditionLogger(log, "placement_unknown", "placement_known")

    def note(self, before: GroupMemory, after: GroupMemory, actions: Actions) -> None:
        """Log what a poll has changed."""
        if before.at_s == math.inf:
            self._note_others(after.group)
        self._silence.update(
            holds=was_silent(after.listing, self._rules),
            silent_s=round(after.listing.silence_s, 3),
        )
        if not after.group.is_leaving:
            # The members that stay may follow a placement that a leaving one lacks.
            self._note_placement(before.group, after.group, actions.plan.unplaced)
        known, seen = before.outsiders, after.outsiders
        if bool(known) is not bool(seen):
            log = self._log.error if seen else self._log.info
            log("foreign_members_detected", owner_ids=sorted(seen))
        self._note_foreign(before, after)

    def _note_others(self, group: Group) -> None:
        """Log who owns partitions at the start: one that has died keeps them until they expire."""
        owners = [
            owner for owner in group.live_owner_by_partition.values() if owner != group.owner_id
        ]
        if owners:
            self._log.info(
                "owners_found",
                owner_ids=sorted(set(owners)),
                owned_count=len(owners),
                expiration_s=self._rules.expiration.total_seconds(),
            )

    def _note_foreign(self, before: GroupMemory, after: GroupMemory) -> None:
        """Log whether processors of an Azure SDK renew too seldom."""
        if not after.foreign:
            self._short_expiration.end()
            return
        expiration = self._rules.expiration
        interval = renewal_interval(before.listing.owned, after.listing.owned, after.foreign)
        if 2 * interval >= expiration:
            self._short_expiration.note(
                owner_ids=sorted(after.foreign),
                interval_s=interval.total_seconds(),
                expiration_s=expiration.total_seconds(),
                remedy="set ownership_expiration to more than twice this interval",
            )

    def _note_placement(self, before: Group, after: Group, unplaced: frozenset[str]) -> None:
        """Log changes of the group's placement, and whether the members' capacity is short."""
        own, former = self._rules.placement.name, before.placement
        name = None if after.placement is None else after.placement.name
        if name is None:
            self._unknown_placement.note(is_error=True, own=own)
        else:
            self._unknown_placement.end(placement=name)
            if former is not None and former.name != name:
                self._log.info("placement_changed", former=former.name, placement=name)
        unowned = unplaced - after.live_owner_by_partition.keys()
        self._short_capacity.update(
            holds=bool(unplaced),
            unowned_count=len(unowned),
            over_capacity_count=len(unplaced) - len(unowned),
        )
