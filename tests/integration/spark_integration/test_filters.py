"""What a batch read plans within bounds."""

from datetime import UTC, datetime, timedelta

import pytest

from eventproc.emulator import EventHubsEmulator
from spark_integration._options import parse_source_options
from spark_integration._source.batch_reader import plan
from spark_integration._source.planning import Bounds
from tests.integration.spark_integration.dated_hub import publish_at

DAY = datetime(2026, 1, 31, tzinfo=UTC)
EVERY_MINUTE = [DAY + timedelta(minutes=minute) for minute in range(24 * 60)]
"""When the events of partitions 0 and 1 were enqueued; partition 2 is empty."""

NOON, ONE = DAY + timedelta(hours=12), DAY + timedelta(hours=13)


@pytest.fixture(name="day", scope="module")
def _day(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dated") / "logs"
    for partition_id in ("0", "1"):
        publish_at(directory, "orders", partition_id, EVERY_MINUTE)
    with EventHubsEmulator({"orders": 3}, directory=directory) as emulator:
        yield emulator


@pytest.mark.parametrize(
    ("bounds", "options", "ranges"),
    [
        ({}, {}, {"0": (0, 1440), "1": (0, 1440)}),
        ({"since": NOON, "until": ONE}, {}, {"0": (720, 781), "1": (720, 781)}),
        (
            {"since": NOON, "until": ONE},
            {"startingPositions": '{"0": 750}'},
            {"0": (750, 781), "1": (720, 781)},
        ),
        ({"since": NOON, "first": 1400, "partition_ids": {"1", "9"}}, {}, {"1": (1400, 1440)}),
        ({"last": 9}, {"startingPositions": '{"0": 5}'}, {"0": (5, 10), "1": (0, 10)}),
        ({"until": DAY - timedelta(days=9)}, {}, {}),
        ({"since": ONE + timedelta(days=9)}, {}, {}),
        ({"since": ONE, "until": NOON}, {}, {}),
        ({"first": 9, "last": 3}, {}, {}),
        ({"first": -7, "last": 10**12}, {}, {"0": (0, 1440), "1": (0, 1440)}),
    ],
)
def test_only_events_within_the_bounds_are_planned(day, bounds, options, ranges):
    """One hour of a day costs an hour's share."""
    given = {"connectionString": day.connection_string_for("orders"), **options}
    planned = plan(parse_source_options(given, is_stream=False), Bounds(**bounds))

    assert {found.partition_id: (found.start, found.end) for found in planned} == ranges
