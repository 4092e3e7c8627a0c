"""``check_placement`` accepts every placement of the library, and refuses what breaks a group."""

import sys
from dataclasses import FrozenInstanceError
from random import Random
from types import ModuleType

import pytest

from eventproc._core.placement.by_load import ByLoad
from eventproc._core.placement.even import Even
from eventproc._core.placement.names import PLACEMENTS
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import GroupState, MemberFacts
from eventproc._core.placement.published import Published
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc.testing import PlacementReport, check_placement
from eventproc.testing._placement_contract import contract as measures
from eventproc.testing._placement_contract.drawing import draw_group
from tests.unit.eventproc._core.placement.states import numbered, state
from tests.unit.eventproc.testing._placement_contract import broken

OURS = (
    Even(),
    Weighted(),
    Ordinal(),
    Ordinal(literal=True),
    Ordinal(replicas=4),
    Ring(),
    Ring(bound=1.25),
    Ring(literal=True),
    Published(Even()),
    Published(Ring()),
    Published(ByLoad()),
    ByLoad(),
)
BROKEN = {
    broken.AtRandom: "equal_states_get_equal_answers: asked again about an equal group",
    broken.ByCall: "equal_states_get_equal_answers: asked again about an equal group",
    broken.ByArrival: "equal_states_get_equal_answers: asked again about an equal group",
    broken.ByClock: r"only_the_state_is_read: it calls time\.time",
    broken.ByDate: r"only_the_state_is_read: it calls datetime\.now",
    broken.ByEnvironment: r"only_the_state_is_read: it calls os\.environ",
    broken.ByUnseededRandom: r"only_the_state_is_read: it calls random\.Random without a seed",
    broken.BySystemRandom: r"only_the_state_is_read: it calls posix\.urandom",
    broken.ByFile: r"only_the_state_is_read: it calls .*\bopen",
    broken.ByHash: "another_process_gives_the_same_answer: in a process with another PYTHONHASHS",
    broken.Losing: "resources_have_owners: no member should have 0",
    broken.TooFew: "resources_have_owners: no member should have",
    broken.HalfQuotas: r"quotas_are_counts: the quota of .* is \d+\.5",
    broken.NegativeQuotas: r"quotas_are_counts: the quota of .* is -\d",
    broken.StrangeQuotas: "quotas_are_counts: there are quotas for",
    broken.IgnoringQuota: r"quotas_are_kept: .* gets 2 resources, its quota is 1",
    broken.HiddenOrder: "owners_are_in_the_order: the plan gives",
    broken.MostFirst: "the_rest_is_kept: carried out:",
    broken.AfterOwner: "a_plan_carried_out_is_kept: carried out: all of it",
    broken.ByLoad: "the_rest_is_kept: carried out:",
    broken.Failing: "answers_every_group: ZeroDivisionError",
}


@pytest.mark.parametrize("placement", OURS, ids=lambda p: p.name)
def test_every_placement_of_the_library_is_accepted(placement):
    """Also by another process."""
    report = check_placement(placement, groups=30)

    assert report.name == placement.name
    assert report.group_count > 20
    assert report.is_checked_elsewhere


def test_every_class_of_the_library_is_checked():
    """A new one belongs here."""
    assert {type(placement) for placement in OURS} == {*PLACEMENTS.values(), Published}


@pytest.mark.parametrize(
    ("cls", "message"), BROKEN.items(), ids=lambda p: getattr(p, "__name__", "")
)
def test_a_placement_that_breaks_a_promise_is_refused(cls, message):
    """The message begins with the promise, and has the group."""
    with pytest.raises(AssertionError, match=rf"\A{message}") as refused:
        check_placement(cls(), groups=100)

    assert "\nthe group: GroupState(resources=('0'" in str(refused.value)


@pytest.mark.parametrize("cls", [broken.ByName, broken.BySeededRandom])
def test_a_placement_that_keeps_every_promise_is_accepted(cls):
    """Also one that draws from a generator with a seed: it is a pure function."""
    assert check_placement(cls(), groups=50).is_checked_elsewhere


def test_a_placement_that_cannot_be_sent_is_not_checked_in_another_process():
    """The report says so."""
    assert not check_placement(broken.WithLambda(), groups=10).is_checked_elsewhere


def test_a_placement_whose_class_cannot_be_imported_is_not_checked_in_another_process(monkeypatch):
    """As one of a notebook."""
    module = ModuleType("no_such_module")
    cls = type("Away", (broken.ByName,), {"__module__": module.__name__})
    vars(module)["Away"] = cls
    monkeypatch.setitem(sys.modules, module.__name__, module)

    assert not check_placement(cls(), groups=10).is_checked_elsewhere


def test_a_placement_may_leave_resources_over_on_purpose():
    """If it says so; the other promises hold as before."""
    assert check_placement(broken.Losing(), groups=20, leaves_over=True).group_count > 0
    with pytest.raises(AssertionError, match="quotas_are_counts"):
        check_placement(broken.HalfQuotas(), groups=20, leaves_over=True)


def test_the_same_seed_draws_the_same_groups():
    """So the group of a broken promise is found again."""
    messages = []
    for seed in (1, 1, 2):
        with pytest.raises(AssertionError) as refused:
            check_placement(broken.Losing(), groups=20, seed=seed)
        messages.append(str(refused.value))

    assert messages[0] == messages[1] != messages[2]


def test_groups_may_be_drawn_by_the_user():
    """With names of resources, for example."""

    def draw(random):
        names = ("north", "south")[: random.randint(1, 2)]
        return GroupState(resources=names, owner_by_resource={}, members={"a": MemberFacts()})

    assert check_placement(Ring(), groups=5, draw=draw).group_count == 5


def test_a_placement_with_which_no_drawn_member_can_start_is_an_error():
    """Nothing would have been checked."""

    def draw(random):
        return state(random.randint(1, 3), a=MemberFacts())

    with pytest.raises(ValueError, match=r"no member of 5 drawn groups can start with .* Ordinal"):
        check_placement(Ordinal(), groups=5, draw=draw)


def test_drawn_groups_have_everything_that_a_plan_depends_on():
    """Free resources, owners that leave, idle members, and capacities that are too small."""
    random = Random(0)
    groups = [draw_group(random) for _ in range(100)]
    found = {
        "free": any(len(g.owner_by_resource) < len(g.resources) for g in groups),
        "leaving": any(set(g.owner_by_resource.values()) - set(g.members) for g in groups),
        "idle": any(0 in g.held_count_by_member.values() for g in groups),
        "foreign": any(f.is_foreign for g in groups for f in g.members.values()),
        "short": any(
            len(g.resources) > sum(f.capacity or 99 for f in g.members.values()) for g in groups
        ),
    }

    assert all(found.values()), found
    assert all(g.members for g in groups)


def test_the_report_says_what_a_placement_costs():
    """``Even`` moves nothing needlessly; the plan of the size that is promised is measured."""
    report = check_placement(Even(), groups=20)

    assert report.moves_above_minimum == 0
    assert report.spread == 1
    assert report.plan_ms > 0
    with pytest.raises(FrozenInstanceError):
        report.spread = 0  # type: ignore[misc]
    assert isinstance(report, PlacementReport)


def test_moves_above_the_minimum_are_those_that_shares_do_not_need():
    """The member with the last name joins 10 on 3; the blocks of ``Ordinal`` all shift."""
    group = numbered(12, 0, 1, 2, 3)

    assert measures.moves_above_minimum(group, Even()) == 0
    assert measures.moves_above_minimum(group, Ordinal()) == 3
    assert measures.moves_above_minimum(group, Ordinal(replicas=4)) == 0


def test_the_spread_regards_neither_weights_nor_capacities():
    """It compares members that are equal."""
    group = state(10, a=MemberFacts(weight=4.0), b=MemberFacts(capacity=1))

    assert measures.spread(group, Weighted()) == 0
    assert measures.spread(numbered(10, 5, 6, 7, 8), Ordinal()) == 1
    assert measures.spread(numbered(10, 5, 6, 7, 8), Ordinal(literal=True)) == 2
