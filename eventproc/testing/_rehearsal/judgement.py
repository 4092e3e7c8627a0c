"""Whether a rehearsal kept what the user promises, by comparison with one without faults."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from eventproc.testing._rehearsal.world import Effect, Place, World

TIMES: Final = {2: "twice"}


class Promise(StrEnum):
    """What a handler promises of its effects and its state."""

    AT_LEAST_ONCE = "at-least-once"
    """Every effect happens. Every rehearsal asks for this."""

    EXACTLY_ONCE = "exactly-once"
    """Every effect happens once, by its key."""

    IN_ORDER = "in-order"
    """The effects of the events of one key happen in the order of these events; repetitions aside.
    """

    STATE = "state"
    """The state in the checkpoints is that of a run without faults: the fold of the events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a run without faults has: one partition after the other, one event at a time."""

    effects: Mapping[str, int]
    """How often each of them happens."""

    place_by_effect: Mapping[str, Place]
    """The event that causes it."""

    state_by_partition: Mapping[str, bytes | None]
    rows: Mapping[str, Sequence[str]]
    """What the databases have at the end, by their target."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to compare: no effect, no state and no row."""
        return not (
            self.effects or any(self.state_by_partition.values()) or any(self.rows.values())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A promise that was not kept."""

    promise: Promise
    what: str
    place: Place | None = None


def expected_of(worlds: Sequence[World]) -> Expected:
    """Return what is expected after worlds without faults, one for each partition."""
    effects = [effect for world in worlds for effect in world.effects]
    places: dict[str, Place] = {}
    for effect in effects:
        if effect.during is not None:
            places.setdefault(effect.what, effect.during)
    states: dict[str, bytes | None] = {}
    for world in worlds:
        served = {partition_id for partition_id, _ in world.key_by_place}
        states |= {p: state for p, state in world.state_by_partition().items() if p in served}
    return Expected(
        effects=Counter(effect.what for effect in effects),
        place_by_effect=places,
        state_by_partition=states,
        rows=_rows(worlds[-1]),
    )


def remark_on_error(world: World) -> str:
    """Return in parentheses what the handler raised last; nothing if it raised nothing."""
    error = world.last_error and (world.last_error.__cause__ or world.last_error)
    return "" if error is None else f" (the handler's last error was {error!r})"


def breach_of(world: World, expected: Expected, promises: Collection[Promise]) -> Breach | None:
    """Return a promise that the world did not keep, if there is one."""
    asked = {Promise.AT_LEAST_ONCE, *promises}
    found = (
        *_strange(world.effects, expected),
        *_miscounted(world, expected),
        *_disorder(world.effects, expected, world.key_by_place),
        *_unlike(world, expected),
    )
    return next((breach for breach in found if breach.promise in asked), None)


def _strange(effects: Sequence[Effect], expected: Expected) -> Iterator[Breach]:
    for effect in effects:
        if effect.what not in expected.effects:
            text = f"{effect.what} happened on {effect.owner_id}: no event has this effect"
            if effect.during is not None:
                others = [
                    e for e, place in expected.place_by_effect.items() if place == effect.during
                ]
                text += f" ({_event(effect.during)} has {' and '.join(others) or 'none'})"
            yield Breach(promise=Promise.AT_LEAST_ONCE, what=text, place=effect.during)


def _miscounted(world: World, expected: Expected) -> Iterator[Breach]:
    counts = Counter(effect.what for effect in world.effects)
    for what, wanted in expected.effects.items():
        place, count = expected.place_by_effect.get(what), counts[what]
        subject = what if place is None else f"{_event(place)}: {what}"
        if count < wanted:
            often = f"happened {count} of {wanted} times" if count else "never happened"
            text = f"{subject} {often}{remark_on_error(world)}"
            yield Breach(promise=Promise.AT_LEAST_ONCE, what=text, place=place)
        if count > wanted:
            often = TIMES.get(count, f"{count} times")
            text = f"{subject} happened {often}"
            yield Breach(promise=Promise.EXACTLY_ONCE, what=text, place=place)


def _unlike(world: World, expected: Expected) -> Iterator[Breach]:
    states = world.state_by_partition()
    for partition_id, state in expected.state_by_partition.items():
        if states.get(partition_id) != state:
            text = (
                f"the state of partition {partition_id} is {states.get(partition_id)!r}, and the "
                f"fold of its events is {state!r}"
            )
            yield Breach(promise=Promise.STATE, what=text, place=(partition_id, -1))
    for target, rows in expected.rows.items():
        found = Counter(_rows(world)[target])
        wrong, missing = found - Counter(rows), Counter(rows) - found
        if wrong or missing:
            text = (
                f"the database {target} has {_named(wrong)}, and the fold of the events has "
                f"{_named(missing)}"
            )
            yield Breach(promise=Promise.STATE, what=text)


def _rows(world: World) -> dict[str, Sequence[str]]:
    return {target: tables.rows() for target, tables in world.tables.items()}


def _named(rows: Counter[str]) -> str:
    return " and ".join(list(rows.elements())[:3]) or "nothing instead"


def _disorder(
    effects: Collection[Effect], expected: Expected, key_by_place: Mapping[Place, str]
) -> Iterator[Breach]:
    newest: dict[str, tuple[Place, str]] = {}
    for what in dict.fromkeys(effect.what for effect in effects):
        place = expected.place_by_effect.get(what)
        if place is None:
            continue
        key = key_by_place[place]
        before, other = newest.get(key, (place, what))
        if place[1] < before[1]:
            yield Breach(
                promise=Promise.IN_ORDER,
                what=f"{what} of {_event(place)} came after {other} of event {before[1]}, "
                f"and both have the key {key!r}",
                place=place,
            )
        newest[key] = place, what


def _event(place: Place) -> str:
    return f"event {place[1]} of partition {place[0]}"
