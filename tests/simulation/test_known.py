"""Scenarios that once violated an invariant, or almost, with everything that was drawn for them."""

import pytest

from eventproc import EventProcessorConfig, LoadBalancingStrategy
from eventproc._core.placement.ordinal import Ordinal
from eventproc.testing._processes import run_processes
from tests.simulation.faults import Fault
from tests.simulation.placements import draw_placement
from tests.simulation.scenario import Mode, Scenario, play_scenario
from tests.simulation.small import scenario as small
from tests.simulation.suites import play


def config(**settings):
    """A usual configuration, on virtual time."""
    return EventProcessorConfig(uses_store_thread=False, **settings)


def fault(at_s, kind, which=0, duration_s=1.0):
    """One fault."""
    return Fault(at_s=at_s, kind=kind, which=which, duration_s=duration_s)


SCENARIOS = {
    "a hub that grows beside Azure's processors": Scenario(
        seed="grown",
        mode=Mode.LIVENESS,
        partition_count=8,
        node_count=3,
        config=config(),
        foreign=("azure-python-greedy", "azure-python-balanced"),
        faults=(fault(60, "grow", 2),),
    ),
    "every processor loses the store while clocks run apart": Scenario(
        seed="apart",
        mode=Mode.LIVENESS,
        partition_count=7,
        node_count=3,
        config=config(),
        publish_every_s=0.3,
        clock_rate_max=0.05,
        faults=tuple(fault(20 + 90 * n, "cut_off", n, 85) for n in range(5)),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_stories_that_once_failed_pass(name):
    """All invariants hold."""
    run_processes(play_scenario(SCENARIOS[name]))


@pytest.mark.parametrize(
    ("suite", "number"),
    [
        pytest.param("lanes", 26, id="lanes that outlive their cancelled pump"),
        pytest.param("safety", 250, id="a checkpoint of a call that suppressed its cancellation"),
        pytest.param("troubled", 7770067, id="deaths behind the handler's own checkpoints"),
        pytest.param("troubled", 7770035, id="a checkpoint for each event on a slow line"),
    ],
)
def test_seeds_that_once_failed_pass(suite, number):
    """Like the scenarios above, but drawn from the seed."""
    play(suite, number)


DRAWN = {
    "a pump that stalled and has not begun again": (
        "619 6x3 BALANCED | stall | 1 break_links, 2 move_position"
    ),
    "the deleted record of a member with a larger weight": (
        "1092 4x2 COOPERATIVE | clocks, manual, stall | "
        "0 outage_while_joining, 1 hang_on, 2 delete_members"
    ),
    "a leave after which a ring takes from another": (
        "1587 6x3 BALANCED | slow store, lanes, stall | 0 leave, 1 leave_slowly"
    ),
    "leases that others took while no answer arrived": (
        "1746 6x2 COOPERATIVE | own checkpoints | 1 idle_member, 2 cut_off"
    ),
    "a member whose last partition others took": (
        "1796 4x3 BALANCED | slow store, own checkpoints, early receivers, manual | "
        "0 lost_answers, 1 join_after_long_rest, 2 sleep_offline"
    ),
    "a renewal after one whose answer was lost": (
        "5102 4x2 BALANCED | "
        "slow store, clocks, busy, own checkpoints, early receivers, static, deliveries, paused | "
        "0 lost_answers, 1 rest"
    ),
    "a call that hangs for longer than a stop and handoff_timeout": (
        "5177 2x2 BALANCED | slow store, paused | 0 hang_on"
    ),
    "a leave while a dead processor is still a member": (
        "5485 2x3 COOPERATIVE | stall | 0 crash, 1 leave_together"
    ),
    "a restart before the former record is deleted": (
        "5494 3x3 COOPERATIVE | slow store, deliveries | 0 late_withdrawal, 1 pause_while_changing"
    ),
    "two leaves, and the second one owns nothing": (
        "5850 2x3 COOPERATIVE | own checkpoints, lanes, manual, paused | "
        "0 partial_outage, 1 leave_together"
    ),
    "a leave during a write of a delivery count": (
        "5918 3x2 GREEDY | slow store, own checkpoints, failing, deliveries, stall | 0 slow_claims"
    ),
    "a leave during a cycle, with a slow store": (
        "7183 6x2 BALANCED | slow store, early receivers, deliveries | "
        "0 break_links, 1 partial_outage, 2 join"
    ),
    "a pump that is made again after a call without its lease": (
        "8943 3x2 BALANCED | manual | 0 lose_during_long_call, 1 steal_links"
    ),
    "what is released for processors that die at once": (
        "9150 6x3 RELEASE | early receivers, paused | 0 crash"
    ),
    "two shares that one of another deployment left": (
        "11898 6x3 BALANCED | early receivers, lanes, manual | 1 join, 2 deploy"
    ),
    "a published plan in a slow store": (
        "18076 6x1 BALANCED | slow store, busy, lanes, paused | 0 twin"
    ),
    "a leave whose requests are lost": (
        "18641 2x3 GREEDY | slow store, deliveries | 0 delete_members, 1 leave_unanswered"
    ),
    "three claims one after another, with a slow store": (
        "20425 6x2 COOPERATIVE | slow store, busy, early receivers, failing, stall, paused | "
        "0 leave_served"
    ),
    "a moved position in a slow store": (
        "23230 3x2 COOPERATIVE | slow store, manual | 0 move_position"
    ),
    "a resumed process that was not replaced yet": (
        "24314 2x2 COOPERATIVE | "
        "slow store, clocks, own checkpoints, early receivers, stall, paused | "
        "0 move_position, 1 partial_outage, 2 replace_promptly"
    ),
    "lost answers after a twin was refused": (
        "31493 6x2 COOPERATIVE | own checkpoints | 0 late_withdrawal, 1 twin, 2 lost_answers"
    ),
    "a position that only passes completed ranges": (
        "31989 2x1 GREEDY | slow store, own checkpoints, lanes, static, deliveries, stall | "
        "0 restart_with_leases, 1 replace_paused"
    ),
    "a call that ends in the moment in which trust ends": (
        "33772 2x1 GREEDY | slow store, failing, manual, deliveries, paused | "
        "0 stale_listings, 1 late_answers"
    ),
    "a leave after which an ordinal takes from another": (
        "34206 6x3 BALANCED | slow store, early receivers, manual, deliveries | "
        "0 crash, 1 hang_on, 2 join_while_draining"
    ),
    "a hand-over by a process that has a successor": (
        "45788 3x2 COOPERATIVE | busy, early receivers, manual, paused | "
        "0 restart_in_place, 1 crash"
    ),
    "an edited record in a group with a published plan": (
        "39940 1x3 BALANCED | deliveries | 0 edit_record"
    ),
    "a hand-over whose write is repeated": (
        "42071 4x2 COOPERATIVE | failing, lanes | 0 leave_while_given, 1 start_together"
    ),
    "a ring that gives all to members that come and go": (
        "61183 3x1 BALANCED | own checkpoints, failing, manual, deliveries, stall, paused | "
        "0 leave_together, 1 churn"
    ),
    "a ring that takes from one that stays when one leaves": (
        "63064 6x3 COOPERATIVE | - | 0 leave_while_draining, 1 leave_served, 2 leave_while_draining"
    ),
    "a leave while a partition is drained for the leaver": (
        "64441 6x2 COOPERATIVE | busy, deliveries, stall | "
        "0 leave_while_given, 2 join_and_leave_at_once"
    ),
    "weights of members that come and go": (
        "70524 3x1 RELEASE | clocks, paused | 0 churn, 1 late_requests"
    ),
    "a process of the newest deployment that dies": (
        "72779 4x3 COOPERATIVE | "
        "own checkpoints, early receivers, failing, lanes, manual, stall, deliveries | "
        "0 deploy, 1 deadly_event, 2 pause_while_changing"
    ),
    "two standby processors that join one after the other": (
        "79344 6x2 COOPERATIVE | slow store, busy, deliveries | 0 deploy, 1 leave_together"
    ),
    "a hand-over of the only partition of a long-lived owner": (
        "7002403 3x1 RELEASE | slow store, clocks, busy, failing, manual, deliveries, stall | "
        "0 lost_while_leaving, 1 rest_for_long, 2 slow_claims"
    ),
    "a member without partitions after an outage": (
        "87848 6x1 BALANCED | own checkpoints | 0 rest, 1 start_together, 2 outage"
    ),
    "hand-overs to a dead member after an outage": (
        "95038 2x2 COOPERATIVE | slow store, manual, stall | 0 crash, 1 outage, 2 start_together"
    ),
    "a processor that starts again while all stop": (
        "46421 1x1 RELEASE | clocks, failing | 0 replace_paused, 1 start_together, 2 leave_together"
    ),
    "a moved position that another program rewrites": (
        "9115907 1x3 BALANCED | own checkpoints, failing, lanes, deliveries, paused | "
        "1 move_unnoticed, 2 rewrite_positions"
    ),
    "a listing that is older than a pause": (
        "9111478 4x2 COOPERATIVE | own checkpoints, manual, stall, paused | "
        "0 stale_listings, 1 hang_on"
    ),
    "weights of which one is due more than the leaver had": (
        "7600973 2x2 BALANCED | slow store | 0 join_while_draining, 1 leave_unanswered"
    ),
    "a long call that fails, and stalls its partition": (
        "7601164 6x3 COOPERATIVE | failing, stall | 0 join_and_free, 1 long_calls"
    ),
    "a start that fails after it wrote its member record": (
        "7602323 1x1 COOPERATIVE | slow store, early receivers, lanes, stall | "
        "1 start_together, 2 lost_while_leaving"
    ),
    "a long call that fails, with a slow store": (
        "7603075 2x2 COOPERATIVE | "
        "slow store, own checkpoints, early receivers, failing, static, stall | "
        "0 long_calls, 1 cut_off"
    ),
    "an edited record that its owner has not read yet": (
        "9308842 4x2 COOPERATIVE | slow store, busy | "
        "0 restart_in_place, 1 edit_record, 2 long_calls"
    ),
    "a twin of a process that has read nothing for long": (
        "9309340 1x2 COOPERATIVE | slow store, failing, static | 1 slow_twin"
    ),
    "a twin each of whose writes arrives late": (
        "9419373 1x2 COOPERATIVE | slow store | 0 slow_twin"
    ),
    "an outage after many processes came and went": (
        "9312672 2x1 GREEDY | busy, failing, lanes, deliveries, stall | "
        "0 leave_together, 1 churn, 2 outage"
    ),
    "a long backlog of slow handlers that fail": (
        "9515442 2x1 COOPERATIVE | busy, failing, static, paused | "
        "0 outage_while_joining, 1 rest_for_long"
    ),
    "an edited record that its owner cannot read for long": (
        "9630327 2x1 COOPERATIVE | clocks, busy, own checkpoints, manual, deliveries | "
        "0 lose_during_long_call, 2 slow_claims"
    ),
    "a refused process that starts again when another leaves": (
        "9635659 1x3 COOPERATIVE | early receivers, stall | "
        "0 replace_paused, 1 foreign, 2 late_withdrawal"
    ),
    "a leave before the only other one is a member again": (
        "9646069 1x2 COOPERATIVE | own checkpoints, lanes | "
        "0 late_answers, 1 late_requests, 2 leave_served"
    ),
}
"""Small scenarios that were drawn: a seed, partitions x processors and the strategy; the
conditions; the situations, each with the number of its details."""


def drawn(text):
    """Read a drawn scenario."""
    head, conditions, steps = text.split(" | ")
    seed, size, strategy = head.split()
    partition_count, processor_count = map(int, size.split("x"))
    placement, _ = draw_placement(f"small/{seed}")
    numbered = [step.split() for step in steps.split(", ")]
    return small.SmallScenario(
        seed=int(seed),
        partition_count=partition_count,
        processor_count=processor_count,
        strategy=LoadBalancingStrategy[strategy],
        placement=placement,
        conditions=() if conditions == "-" else tuple(conditions.split(", ")),
        steps=tuple((int(number), name) for number, name in numbered),
    )


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_stories_that_once_failed_pass(name):
    """Like the scenarios below, with all that was drawn for them in one line."""
    run_processes(small.play_scenario(drawn(DRAWN[name])))


SMALL_SCENARIOS = {
    "a process that was replaced between its two listings": small.SmallScenario(
        seed=14594,
        partition_count=1,
        processor_count=2,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        conditions=("slow store",),
        steps=((0, "replace_paused"),),
    ),
    "a twin of a processor whose records expired": small.SmallScenario(
        seed=11644,
        partition_count=1,
        processor_count=1,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        conditions=(),
        steps=((0, "late_requests"), (1, "twin")),
    ),
    "a twin that writes before each answer of the live process": small.SmallScenario(
        seed=5002318,
        partition_count=1,
        processor_count=3,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        placement=Ordinal(replicas=100),
        conditions=("slow store", "paused"),
        steps=((0, "twin"),),
    ),
    "a request that gets no answer when the situation is over": small.SmallScenario(
        seed=7800508,
        partition_count=1,
        processor_count=2,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        conditions=("clocks", "paused"),
        steps=((0, "late_requests"),),
    ),
}


@pytest.mark.parametrize("name", SMALL_SCENARIOS)
def test_small_stories_that_once_failed_pass(name):
    """All invariants hold, and nothing costs more than it has to."""
    run_processes(small.play_scenario(SMALL_SCENARIOS[name]))
