"""``rehearse``: play many seeds, find the first that breaks a promise, shrink it and tell it."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from eventproc._base.settings import Count, checked
from eventproc._delivery.config import EventProcessorConfig, FailureAction
from eventproc.errors import ConfigurationError
from eventproc.sources.memory import MemoryHub
from eventproc.testing._rehearsal.application import Application
from eventproc.testing._rehearsal.database import Database, Tables
from eventproc.testing._rehearsal.fakes import Clock, Ledger
from eventproc.testing._rehearsal.judgement import (
    Breach,
    Expected,
    Promise,
    breach_of,
    expected_of,
    remark_on_error,
)
from eventproc.testing._rehearsal.plan import NO_EVENT, Plan, draw, simpler
from eventproc.testing._rehearsal.world import Piece, World, played

SHRINKS_MAX: Final = 200
"""Shrinking ends after this many plans, simple enough or not: some seconds."""
LINES_MAX: Final = 60
REFERENCE_GAP_S: Final = 5.0
"""In a run without faults what one event causes is over before the next one comes."""

EVENTS: Final = "events=, in a terminal --events"

Event: TypeAlias = bytes | str | Mapping[str, Any] | tuple[str, bytes | str | Mapping[str, Any]]


class BrokenPromise(AssertionError):  # noqa: N818 - the plain name
    """The handler did not keep a promise; the message tells how."""


def numbered_event(number: int) -> Event:
    """Make the event with this number, if the user does not: one of three keys, in JSON."""
    key = f"k{number % 3}"
    return key, {"id": number, "key": key, "amount": 10 + number}


def _encoded(number: int, made: Event) -> tuple[str, bytes]:
    """Return the key and the body of an event."""
    key, body = made if isinstance(made, tuple) else (f"k{number % 3}", made)
    text = body if isinstance(body, bytes | str) else json.dumps(body)
    return key, text.encode() if isinstance(text, str) else text


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """A handler with its fakes and promises."""

    piece: Piece
    promises: Collection[Promise]
    _expected: dict[Plan, Expected] = field(default_factory=dict)

    def check(self, seed: int) -> tuple[Plan, Breach] | None:
        """Play a seed; return its plan, shrunk, and the promise that it breaks, if any."""
        policy = self.piece.config.failure_policy
        # A partition that stops at an event promises nothing of those after it.
        gives_up = policy.attempts_max is not None and policy.action is not FailureAction.STOP
        plan = draw(seed, has_poison=gives_up)
        breach = self._breach(plan)
        return None if breach is None else self._shrunk(plan, breach)

    def require_effects(self) -> None:
        """Check that something could be judged.

        Raises:
            ConfigurationError: In no run it did anything.
        """
        if all(expected.is_empty for expected in self._expected.values()):
            raise ConfigurationError(
                f"{self.piece.application.name} had no effect and stored no state in any "
                "rehearsal, so nothing can be judged: declare what it changes as fakes, or give "
                f"events that it handles ({EVENTS})"
            )

    def story(self, plan: Plan, breach: Breach) -> str:
        """Tell a broken promise: what, how it came about, and everything that happened."""
        world = self._play(plan)
        partition_id = breach.place[0] if breach.place else ""
        told = [what for what, of in world.told if of in ("", partition_id)]
        cause = ", ".join(told) or "without any fault"
        lines = world.lines[:LINES_MAX]
        return (
            f"{breach.what}: {cause}\n\n"
            f"{self.piece.application.name} does not keep the promise {breach.promise.value!r}. "
            f"What happened (seconds of virtual time):\n" + "\n".join(lines)
        )

    def _play(self, plan: Plan, tables: Mapping[str, Tables] | None = None) -> World:
        return played(self.piece, plan, tables)

    def _breach(self, plan: Plan) -> Breach | None:
        return breach_of(self._play(plan), self._expected_of(plan), self.promises)

    def _expected_of(self, plan: Plan) -> Expected:
        """Return what is expected: from runs without faults, each with the events of a partition.

        Raises:
            ConfigurationError: Two such runs have different effects, or events are not handled.
        """
        calm = Plan(
            events=plan.events,
            partition_count=plan.partition_count,
            poison=plan.poison,
            gap_s=REFERENCE_GAP_S,
        )
        if calm not in self._expected:
            whole = self._runs(calm)
            if not self._expected and (again := self._runs(calm)) != whole:
                differing = {*whole.effects} ^ {*again.effects} or {"its state"}
                raise ConfigurationError(
                    f"{self.piece.application.name} does not do the same for the same events: "
                    f"{min(differing)} is in one of two runs without faults. Leave what is drawn "
                    "or timed out of what identifies the effect: Ledger(..., key=...)"
                )
            self._expected[calm] = whole
        return self._expected[calm]

    def _runs(self, calm: Plan) -> Expected:
        by_partition: dict[str, list[int]] = {}
        hub = MemoryHub(calm.partition_count)
        for number in calm.events:
            partition_id, _ = hub.publish(b"", partition_key=self.piece.event(number)[0])
            by_partition.setdefault(partition_id, []).append(number)
        worlds: list[World] = []
        for own in by_partition.values():
            tables = worlds[-1].tables if worlds else {}
            worlds.append(self._play(replace(calm, events=tuple(own)), tables))
        expected = expected_of(worlds)
        failed = [w for w in worlds if not w.is_complete or (w.last_error and expected.is_empty)]
        if failed and calm.poison == NO_EVENT:
            raise ConfigurationError(
                f"{self.piece.application.name} does not handle its events without any fault"
                f"{remark_on_error(failed[0])}: give events that it handles ({EVENTS}), and "
                "declare what it needs as fakes"
            )
        return expected

    def _shrunk(self, plan: Plan, breach: Breach) -> tuple[Plan, Breach]:
        """Return the simplest plan found that breaks the same promise."""
        # After a success the search goes on at its place: what did not help before it seldom does
        # after it, and is tried again in the next round.
        candidates = [*simpler(plan)]
        tries = place = failed = 0
        while failed < len(candidates) and tries < SHRINKS_MAX:
            tries += 1
            candidate = candidates[place % len(candidates)]
            found = self._breach(candidate)
            if found is not None and found.promise is breach.promise:
                plan, breach = candidate, found
                candidates, failed = [*simpler(plan)], 0
            else:
                place, failed = place + 1, failed + 1
        return plan, breach


@checked
def rehearse(
    handler: str | Callable[..., object],
    *fakes: Ledger | Database | Clock,
    promises: Collection[Promise] = (),
    events: Callable[[int], Event] = numbered_event,
    config: EventProcessorConfig | None = None,
    seeds: Count = 100,
    first_seed: int = 0,
) -> None:
    """Rehearse a handler: play it in groups of simulated processes, with faults that are drawn.

    Args:
        handler: ``"shop:Orders"``: the class, or a function that makes a handler. A class will do
            if its module can be imported.
        *fakes: What the handler changes or reads outside of itself.
        promises: What it promises, besides that every effect happens at least once.
        events: Gets a number, from 1, and returns the body of that event, or its partition key and
            its body. What is neither bytes nor text becomes JSON.
        config: As for ``EventProcessor``.
        seeds: How many rehearsals.
        first_seed: The first of them.

    Raises:
        BrokenPromise: A promise was broken; the message tells how.
        ConfigurationError: The handler cannot be rehearsed; the message names the remedy.
    """
    rehearsal = Rehearsal(
        piece=Piece(
            application=Application(handler),
            fakes=fakes,
            event=lambda number: _encoded(number, events(number)),
            config=config or EventProcessorConfig(),
        ),
        promises=frozenset(map(Promise, promises)),
    )
    for seed in range(first_seed, first_seed + seeds):
        found = rehearsal.check(seed)
        if found is not None:
            raise BrokenPromise(
                f"{rehearsal.story(*found)}\n\nagain: first_seed={seed}, seeds=1 "
                f"(in a terminal --seed {seed} --seeds 1)"
            )
    rehearsal.require_effects()
