"""Real processes that die: of an event, of a signal, and in the middle of everything."""

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from eventproc.emulator import EventHubsEmulator
from tests.integration.delivery.fleet import KEYS, Fleet

DIED = "delivered several times, and each time the process died before it was handled"


@pytest.fixture(name="make_fleet")
def _make_fleet(tmp_path) -> Iterator[Callable[..., Fleet]]:
    fleets: list[Fleet] = []
    with EventHubsEmulator({"hub": 1}) as emulator:

        def make(store: str = "", **settings: object) -> Fleet:
            fleets.append(Fleet(emulator, tmp_path, store, **settings))
            return fleets[-1]

        yield make
        for fleet in fleets:
            fleet.end()


def test_an_event_that_kills_its_process_is_found_and_buried(make_fleet):
    """After four deaths it is in the dead letters, and everything else is handled."""
    fleet = make_fleet()
    fleet.publish(150, {40: "die", 100: "fail"})
    fleet.start("a")
    fleet.until(lambda: len(set(fleet.numbers("handled"))) == 148)
    fleet.stop("a")

    assert fleet.numbers("died") == [40] * 4
    assert [facts[2:] for facts in fleet.story() if facts[1] == "buried"] == [
        ["0", 40, 3, "", DIED],
        ["0", 100, 2, "ValueError", "nobody can handle this"],
    ]
    assert set(fleet.numbers("handled")) == set(range(150)) - {40, 100}
    assert max(Counter(n for n in fleet.numbers("handled") if n > 40).values()) == 1


@pytest.mark.timeout(180)
def test_a_poison_event_among_ten_thousand_harms_nobody_else(make_fleet, container, storage):
    """The rest is handled once, also while the partition changes hands in good order."""
    fleet = make_fleet(store=f"{container} {storage}", key_concurrency=4, pace_s=0)
    fleet.publish(10_000, {5_000: "fail"})
    fleet.start("a")
    fleet.until_told(2_000)
    fleet.start("b")
    fleet.stop("a")
    fleet.until_told(10_000)
    fleet.stop("b")
    counts = Counter(fleet.numbers("handled"))
    (letter,) = [facts for facts in fleet.story() if facts[1] == "buried"]

    assert set(counts) == set(range(10_000)) - {5_000}
    assert set(counts.values()) == {1}
    assert letter[2:] == ["0", 5_000, 2, "ValueError", "nobody can handle this"]


def test_lanes_keep_their_keys_in_order_through_kills(make_fleet):
    """Nothing is lost, and whoever takes over repeats only what was under way or not stored."""
    fleet = make_fleet(key_concurrency=4)
    fleet.publish(2_000)
    rng = random.Random(7)
    for owner_id in ("a", "b"):
        fleet.start(owner_id)
    for _ in range(2):
        so_far = len(fleet.numbers("handled"))
        fleet.until(lambda so_far=so_far: len(fleet.numbers("handled")) > so_far + 300)
        owner_id = rng.choice(["a", "b"])
        fleet.kill(owner_id)
        fleet.start(owner_id)
    fleet.until(lambda: len(set(fleet.numbers("handled"))) == 2_000)
    handled = fleet.numbers("handled")

    assert set(handled) == set(range(2_000))
    for key in range(KEYS):
        newest = -1
        for number in (n for n in handled if n % KEYS == key):
            assert number <= newest + KEYS  # None is passed over; after a kill some come again.
            newest = max(newest, number)
