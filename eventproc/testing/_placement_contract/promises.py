"""The promises of a placement, each a function that checks it for one group.

The name of a function is the name of its promise, and its docstring says what is promised.

Calls of impure functions are found by a profiler: those that read a clock, the machine, or the
network. It sees C functions that Python code calls directly. It does not see one that another C
function calls, as in ``map(call, [time.time])`` or ``dict.setdefault``.
"""

import gc
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from random import Random
from types import FrameType, ModuleType
from typing import Final, TypeAlias

from eventproc._core.placement.answer import Answer, answer
from eventproc._core.placement.placement import GroupState, Placement
from eventproc._core.placement.plan import plan
from eventproc.testing._placement_contract.drawing import with_members, with_owners

IMPURE_MODULES: Final = frozenset(
    {"time", "posix", "nt", "io", "_io", "socket", "_socket", "_uuid"}
)
"""Modules in C whose functions a placement must not call."""

HARMLESS: Final = frozenset({"fspath"})
CLOCK_METHODS: Final = frozenset({"now", "today", "utcnow"})
SHARED_RANDOM: Final = getattr(random.random, "__self__", None)
"""The generator behind the functions of the module ``random``."""

ENVIRONMENT: Final = (os.environ, getattr(os, "environb", None))


def impure_calls(function: Callable[[], object]) -> list[str]:
    """Call a function, and return the names of the impure functions that it calls, sorted."""
    found: set[str] = set()

    def watch(frame: FrameType, event: str, function: object) -> None:
        name = None
        if event == "c_call" and "importlib" not in frame.f_code.co_filename:
            name = _impure_c_function(function)
        elif event == "call":
            name = _impure_frame(frame)
        if name is not None:
            found.add(name)

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # A callback of the collector may read a clock; that is not the function's call.
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return sorted(found)


def _impure_c_function(function: object) -> str | None:
    """Return the name of a function of C that reads more than its arguments."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if isinstance(owner, ModuleType):
        is_impure = owner.__name__ in IMPURE_MODULES and name not in HARMLESS
        return f"{owner.__name__}.{name}" if is_impure else None
    if isinstance(owner, type) and issubclass(owner, date) and name in CLOCK_METHODS:
        return f"{owner.__name__}.{name}"
    return f"random.{name}" if owner is SHARED_RANDOM else None


def _impure_frame(frame: FrameType) -> str | None:
    """Return the name of an impure function of Python."""
    if frame.f_globals is vars(os):
        subject = frame.f_locals.get("self")
        return "os.environ" if any(subject is known for known in ENVIRONMENT) else None
    is_unseeded = (
        frame.f_code is random.Random.__init__.__code__ and frame.f_locals.get("x") is None
    )
    return "random.Random without a seed" if is_unseeded else None


PARTS: Final = 4
"""How many parts of each plan are carried out."""


class BrokenPromiseError(Exception):
    """A placement does not keep a promise; the message says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A placement, a group, and the first answer for it."""

    placement: Placement
    state: GroupState
    answer: Answer
    random: Random
    """Decides which parts are carried out."""

    leaves_over: bool

    @property
    def planned(self) -> Mapping[str, str]:
        """The plan."""
        return self.answer.plan

    @property
    def moves(self) -> Mapping[str, str]:
        """The planned owner of each resource that must get another one."""
        owned = self.state.owner_by_resource
        return {r: owner for r, owner in self.planned.items() if owned.get(r) != owner}


Promise: TypeAlias = Callable[[Case], None]


def quotas_are_counts(state: GroupState, placement: Placement) -> None:
    """Each member, and no other, has a quota: a whole number from zero, or ``None``.

    This is checked before there is a plan: with other quotas there may be none.
    """
    quotas, members = placement.quotas(state), state.members
    _require(
        quotas.keys() == members.keys(),
        f"there are quotas for {sorted(quotas)}, and the members are {sorted(members)}",
    )
    for member, quota in quotas.items():
        is_count = quota is None or (type(quota) is int and quota >= 0)
        _require(is_count, f"the quota of {member} is {quota!r}")


def equal_states_get_equal_answers(case: Case) -> None:
    """Equal groups get the same answer, whatever the order of their owners and members."""
    state = case.state
    for members, owned in (
        (list(state.members.items()), list(state.owner_by_resource.items())),
        (list(state.members.items())[::-1], list(state.owner_by_resource.items())[::-1]),
    ):
        again = with_members(with_owners(state, dict(owned)), dict(members))
        found = answer(again, case.placement)
        require_equal(found, case.answer, "asked again about an equal group")


def only_the_state_is_read(case: Case) -> None:
    """The answer is computed from the group alone: no clock, no random numbers, no environment."""
    state = with_members(case.state, dict(case.state.members))
    calls = impure_calls(lambda: answer(state, case.placement))
    _require(not calls, f"it calls {', '.join(calls)}")


def quotas_are_kept(case: Case) -> None:
    """The plan gives no member more than its quota."""
    for member, count in _counts(case).items():
        quota = case.answer.quotas[member]
        _require(
            quota is None or count <= quota,
            f"{member} gets {count} resources, its quota is {quota}",
        )


def owners_are_in_the_order(case: Case) -> None:
    """A member that ``order`` leaves out neither gets the resource nor keeps it."""
    for resource, owner in case.planned.items():
        order = case.answer.order_by_resource[resource]
        _require(
            owner in order, f"the plan gives {resource} to {owner}, and its order is {list(order)}"
        )


def places_are_used(case: Case) -> None:
    """No resource is without a planned owner while a member of its order is below its quota."""
    counts, quotas = _counts(case), case.answer.quotas
    for resource in _left_over(case):
        for member in case.answer.order_by_resource[resource]:
            quota = quotas.get(member, 0)
            _require(
                quota is not None and counts[member] >= quota,
                f"{resource} has no planned owner, but {member} may have it and has a place",
            )


def resources_have_owners(case: Case) -> None:
    """Each resource has a planned owner while the members' capacities are large enough."""
    capacities = [facts.capacity for facts in case.state.members.values()]
    total = sum(capacity for capacity in capacities if capacity is not None)
    if not case.leaves_over and (None in capacities or total >= len(case.state.resources)):
        left = _left_over(case)
        _require(not left, f"no member should have {', '.join(left)}")


def a_plan_carried_out_is_kept(case: Case) -> None:
    """When the whole plan has been carried out, the next one is the same: nothing moves."""
    _require_same_plan(case, {**case.state.owner_by_resource, **case.moves}, "all of it")


def the_rest_is_kept(case: Case) -> None:
    """When a part of the plan was carried out, in any order, the next plan is the same.

    A resource on its way may be without an owner for a while: with the strategy ``RELEASE`` it
    always is.
    """
    moves = list(case.moves.items())
    for _ in range(PARTS if moves else 0):
        case.random.shuffle(moves)
        done = dict(moves[: case.random.randrange(len(moves) + 1)])
        owned = {**case.state.owner_by_resource, **done}
        released = [r for r in _let_go(case) if r not in done and case.random.random() < 1 / 3]
        for resource in released:
            owned.pop(resource, None)
        what = f"{_text(done)}" + (f" with {released} released" if released else "")
        _require_same_plan(case, owned, what)


PROMISES: Final[Sequence[Promise]] = (
    equal_states_get_equal_answers,
    only_the_state_is_read,
    quotas_are_kept,
    owners_are_in_the_order,
    places_are_used,
    resources_have_owners,
    a_plan_carried_out_is_kept,
    the_rest_is_kept,
)
"""In the order in which they are checked. An answer that changes breaks the later ones, too."""


def _let_go(case: Case) -> list[str]:
    """Return the resources that owners release: planned moves, and those of leaving owners."""
    owned, members = case.state.owner_by_resource, case.state.members
    return [r for r in owned if r in case.moves or owned[r] not in members]


def _counts(case: Case) -> dict[str, int]:
    owners = list(case.planned.values())
    return {member: owners.count(member) for member in case.state.members}


def _left_over(case: Case) -> list[str]:
    return [resource for resource in case.state.resources if resource not in case.planned]


def _require_same_plan(case: Case, owned: dict[str, str], done: str) -> None:
    found = plan(with_owners(case.state, owned), case.placement)
    _require(
        found == case.planned,
        f"carried out: {done}\nplan before: {_text(case.planned)}\nplan after:  {_text(found)}",
    )


def require_equal(found: Answer, expected: Answer, when: str) -> None:
    """Raise an error that names the difference between two answers."""
    for what in ("quotas", "order_by_resource", "plan"):
        old, new = getattr(expected, what), getattr(found, what)
        _require(
            old == new,
            f"{when}: another answer\n{what} before: {_text(old)}\n{what} after:  {_text(new)}",
        )


def _text(mapping: Mapping[str, object]) -> str:
    return str(dict(sorted(mapping.items())))


def _require(is_kept: bool, message: str) -> None:  # noqa: FBT001 - as in an assertion
    if not is_kept:
        raise BrokenPromiseError(message)
