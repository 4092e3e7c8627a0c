"""Stories that once violated an invariant, or almost, with everything that was drawn for them."""

import pytest

from eventproc import EventProcessorConfig, LoadBalancingStrategy
from eventproc.core.placement.ordinal import Ordinal
from eventproc.testing._processes import run_processes
from tests.simulation.faults import Fault
from tests.simulation.small import story as small
from tests.simulation.stories import Mode, Story, play_story
from tests.simulation.suites import play


def config(**settings):
    """A usual configuration, on virtual time."""
    return EventProcessorConfig(uses_store_thread=False, **settings)


def fault(at_s, kind, which=0, duration_s=1.0):
    """One fault."""
    return Fault(at_s=at_s, kind=kind, which=which, duration_s=duration_s)


STORIES = {
    "a hub that grows beside Azure's processors": Story(
        seed="grown",
        mode=Mode.LIVENESS,
        partition_count=8,
        node_count=3,
        config=config(),
        foreign=("azure-python-greedy", "azure-python-balanced"),
        faults=(fault(60, "grow", 2),),
    ),
    "every processor loses the store while clocks run apart": Story(
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


@pytest.mark.parametrize("name", STORIES)
def test_stories_that_once_failed_pass(name):
    """All invariants hold."""
    run_processes(play_story(STORIES[name]))


@pytest.mark.parametrize(
    ("suite", "number"),
    [
        pytest.param("lanes", 26, id="lanes that outlive their cancelled pump"),
        pytest.param("safety", 250, id="a checkpoint of a call that suppressed its cancellation"),
        pytest.param("troubled", 7770067, id="deaths behind the handler's own checkpoints"),
        pytest.param("troubled", 7770035, id="a checkpoint for each event on a slow line"),
        pytest.param("small", 619, id="a pump that stalled and has not begun again"),
        pytest.param("small", 1092, id="the deleted record of a member with a larger weight"),
        pytest.param("small", 1587, id="a leave after which a ring takes from another"),
        pytest.param("small", 1746, id="leases that others took while no answer arrived"),
        pytest.param("small", 1796, id="a member whose last partition others took"),
        pytest.param("small", 2431, id="a stop during a renewal of the member record"),
        pytest.param("small", 5102, id="a renewal after one whose answer was lost"),
        pytest.param(
            "small", 5177, id="a call that hangs for longer than a stop and handoff_timeout"
        ),
        pytest.param("small", 5485, id="a leave while a dead processor is still a member"),
        pytest.param("small", 5494, id="a restart before the former record is deleted"),
        pytest.param("small", 5850, id="two leaves, and the second one owns nothing"),
        pytest.param("small", 5918, id="a leave during a write of a delivery count"),
        pytest.param("small", 7183, id="a leave during a cycle, with a slow store"),
        pytest.param("small", 8943, id="a pump that is made again after a call without its lease"),
        pytest.param("small", 9150, id="what is released for processors that die at once"),
        pytest.param("small", 10075, id="a renewal that is due after a slow write"),
        pytest.param("small", 11898, id="two shares that one of another deployment left"),
        pytest.param("small", 18076, id="a published plan in a slow store"),
        pytest.param("small", 18641, id="a leave whose requests are lost"),
        pytest.param("small", 20425, id="three claims one after another, with a slow store"),
        pytest.param("small", 23230, id="a moved position in a slow store"),
        pytest.param("small", 24314, id="a resumed process that was not replaced yet"),
        pytest.param("small", 31493, id="lost answers after a twin was refused"),
        pytest.param("small", 31989, id="a position that only passes completed ranges"),
        pytest.param("small", 33772, id="a call that ends in the moment in which trust ends"),
        pytest.param("small", 34206, id="a leave after which an ordinal takes from another"),
        pytest.param("small", 45788, id="a hand-over by a process that has a successor"),
        pytest.param("small", 39940, id="an edited record in a group with a published plan"),
        pytest.param("small", 42071, id="a hand-over whose write is repeated"),
        pytest.param("small", 61183, id="a ring that gives all to members that come and go"),
        pytest.param("small", 63064, id="a ring that takes from one that stays when one leaves"),
        pytest.param("small", 64441, id="a leave while a partition is drained for the leaver"),
        pytest.param("small", 70524, id="weights of members that come and go"),
        pytest.param("small", 72779, id="a process of the newest deployment that dies"),
        pytest.param("small", 79344, id="two standby processors that join one after the other"),
        pytest.param(
            "small", 7002403, id="a hand-over of the only partition of a long-lived owner"
        ),
        pytest.param("small", 87795, id="a hand-over although a silent member renewed"),
        pytest.param("small", 87848, id="a member without partitions after an outage"),
        pytest.param("small", 94502, id="hand-overs although a silent member renewed"),
        pytest.param("small", 95038, id="hand-overs to a dead member after an outage"),
        pytest.param("small", 46421, id="a processor that starts again while all stop"),
        pytest.param("small", 9115907, id="a moved position that another program rewrites"),
        pytest.param("small", 9111478, id="a listing that is older than a pause"),
        pytest.param("small", 7600973, id="weights of which one is due more than the leaver had"),
        pytest.param("small", 7601164, id="a long call that fails, and stalls its partition"),
        pytest.param("small", 7602323, id="a start that fails after it wrote its member record"),
        pytest.param("small", 7603075, id="a long call that fails, with a slow store"),
        pytest.param("small", 9308842, id="an edited record that its owner has not read yet"),
        pytest.param("small", 9309340, id="a twin of a process that has read nothing for long"),
        pytest.param("small", 9419373, id="a twin each of whose writes arrives late"),
        pytest.param("small", 9312672, id="an outage after many processes came and went"),
        pytest.param("small", 9515442, id="a long backlog of slow handlers that fail"),
        pytest.param("small", 9630327, id="an edited record that its owner cannot read for long"),
        pytest.param(
            "small", 9635659, id="a refused process that starts again when another leaves"
        ),
        pytest.param("small", 9646069, id="a leave before the only other one is a member again"),
    ],
)
def test_seeds_that_once_failed_pass(suite, number):
    """Like the stories above, but drawn from the seed."""
    play(suite, number)


SMALL_STORIES = {
    "a process whose successor renews its session yields": small.SmallStory(
        seed=52192,
        partition_count=1,
        processor_count=2,
        strategy=LoadBalancingStrategy.GREEDY,
        conditions=("session",),
        steps=((0, "replace_paused"),),
    ),
    "a process that was replaced between its two listings": small.SmallStory(
        seed=14594,
        partition_count=1,
        processor_count=2,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        conditions=("slow store", "session"),
        steps=((0, "replace_paused"),),
    ),
    "a twin of a processor whose records expired": small.SmallStory(
        seed=11644,
        partition_count=1,
        processor_count=1,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        conditions=(),
        steps=((0, "late_requests"), (1, "twin")),
    ),
    "a twin that writes before each answer of the live process": small.SmallStory(
        seed=5002318,
        partition_count=1,
        processor_count=3,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        placement=Ordinal(replicas=100),
        conditions=("slow store", "session", "paused"),
        steps=((0, "twin"),),
    ),
    "a request that gets no answer when the situation is over": small.SmallStory(
        seed=7800508,
        partition_count=1,
        processor_count=2,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        conditions=("clocks", "paused"),
        steps=((0, "late_requests"),),
    ),
    "a blind owner that was given a second partition": small.SmallStory(
        seed=12294,
        partition_count=2,
        processor_count=3,
        strategy=LoadBalancingStrategy.COOPERATIVE,
        conditions=("busy", "stall", "session"),
        steps=((0, "blind"),),
    ),
}


@pytest.mark.parametrize("name", SMALL_STORIES)
def test_small_stories_that_once_failed_pass(name):
    """All invariants hold, and nothing costs more than it has to."""
    run_processes(small.play_story(SMALL_STORIES[name]))
