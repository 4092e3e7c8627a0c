"""Placements that break one promise each, as a user might write them."""

import os
import random
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from eventproc._core.placement.clockwise import Circle, Clockwise
from eventproc._core.placement.even import Even
from eventproc._core.placement.placement import Placement


class ByName(Placement):
    """The members by name, beginning at one that is drawn from the resource; never broken."""

    is_sticky = False

    def number(self, resource, state) -> int:
        """Return a number that decides which member comes first."""
        return int(resource)

    def order(self, state):
        """Return members by name, from one on."""
        names = sorted(state.members)

        def order(resource):
            first = self.number(resource, state) % len(names)
            return names[first:] + names[:first]

        return order


class AtRandom(ByName):
    """Draws a member."""

    def number(self, resource, state):
        """Return a random number."""
        return random.randrange(100)


class ByClock(ByName):
    """Changes by the hour."""

    def number(self, resource, state):
        """Return the hour."""
        return int(time.time() // 3600)


class ByDate(ByName):
    """Changes by the day."""

    def number(self, resource, state):
        """Return the day."""
        return datetime.now(UTC).day


class ByEnvironment(ByName):
    """Another one on each machine."""

    def number(self, resource, state):
        """Return the length of a variable."""
        return len(os.environ.get("HOSTNAME", ""))


class ByUnseededRandom(ByName):
    """Draws from its own generator, but not what it draws matters."""

    def number(self, resource, state):
        """Return zero."""
        return 0 * random.Random().randrange(10)


class BySystemRandom(ByName):
    """Draws from the operating system, but not what it draws matters."""

    def number(self, resource, state):
        """Return zero."""
        return 0 * uuid.uuid4().int


class ByFile(ByName):
    """Reads a file."""

    def number(self, resource, state):
        """Return the number of bytes of this file."""
        return len(Path(__file__).read_bytes())


class BySeededRandom(ByName):
    """Draws from a generator that begins at the resource: a pure function; not broken."""

    def number(self, resource, state):
        """Return a number that depends on the resource alone."""
        return random.Random(resource).randrange(100)


class ByHash(ByName):
    """Uses ``hash()``, which differs from process to process."""

    def number(self, resource, state):
        """Return the hash of a text."""
        return hash(resource + "salt")


class ByArrival(Even):
    """Prefers the member that comes first in the listing."""

    def order(self, state):
        """Return members as they are listed."""
        names = list(state.members)
        return lambda _resource: names


class ByCall(Even):
    """Changes with each call."""

    calls = 0

    def order(self, state):
        """Return the members from another one on, each time."""
        ByCall.calls += 1
        names = sorted(state.members)
        first = ByCall.calls % len(names)
        return lambda _resource: names[first:] + names[:first]


class Losing(ByName):
    """Has no member for some resources."""

    def order(self, state):
        """Return no member for each seventh resource."""
        order = super().order(state)
        return lambda resource: [] if int(resource) % 7 == 0 else order(resource)


class TooFew(Even):
    """Rounds down what each member may have."""

    def quotas(self, state):
        """Return the whole part of the mean."""
        return dict.fromkeys(state.members, len(state.resources) // len(state.members))


class HalfQuotas(Even):
    """Has quotas that are no whole numbers: a place is always left."""

    def quotas(self, state):
        """Return a half more than the mean."""
        return dict.fromkeys(state.members, len(state.resources) // len(state.members) + 0.5)


class NegativeQuotas(Even):
    """Has a quota below zero."""

    def quotas(self, state):
        """Return what is left of a quota after what the member has."""
        return {m: 1 - count for m, count in state.held_count_by_member.items()}


class StrangeQuotas(Even):
    """Has quotas of owners that are no members."""

    def quotas(self, state):
        """Return quotas of all owners."""
        return dict.fromkeys({*state.members, *state.owner_by_resource.values()})


@dataclass(frozen=True)
class IgnoringQuota(Even):
    """Gives quotas, and later others: those of the plan are not those that it answers."""

    def quotas(self, state):
        """Return quotas of one the first time, and of two the next time."""
        state.__dict__["asked"] = state.__dict__.get("asked", 0) + 1
        return dict.fromkeys(state.members, min(2, state.__dict__["asked"]))


class HiddenOrder(Even):
    """Leaves a member out of an order that the plan does not call."""

    def order(self, state):
        """Return a ``Clockwise`` of another order."""
        return _WithoutFirst(Circle.of(state.members))


class _WithoutFirst(Clockwise):
    def __call__(self, resource):
        return iter([*super().__call__(resource)][1:])


class MostFirst(Even):
    """Gives the extra places to the members that own most: it changes with each move."""

    def quotas(self, state):
        """Return quotas by exact counts."""
        least, extra = divmod(len(state.resources), len(state.members))
        held = state.held_count_by_member
        first = sorted(held, key=lambda m: (-held[m], m))[:extra]
        return {m: least + (m in first) for m in held}


class AfterOwner(ByName):
    """Prefers the member after the present owner: it never comes to rest."""

    def number(self, resource, state):
        """Return the index after the owner's."""
        owner = state.owner_by_resource.get(resource)
        names = sorted(state.members)
        return names.index(owner) + 1 if owner in names else 0


class ByLoad(ByName):
    """Prefers the member that owns least now: the rest changes while a part is carried out."""

    def order(self, state):
        """Return members by what they own."""
        held = Counter(state.owner_by_resource.values())
        names = sorted(state.members, key=lambda name: (held[name], name))
        return lambda resource: [state.owner_by_resource.get(resource, names[0]), *names]


class Failing(ByName):
    """Fails for some groups."""

    def number(self, resource, state):
        """Return a share of what others own."""
        return 10 // (len(state.members) - 3)


class WithLambda(ByName):
    """Cannot be sent to another process; not broken."""

    def __init__(self):
        """Keep what ``pickle`` refuses."""
        self.key = lambda resource: resource
