"""What a sink's tasks and driver tell each other, as plain values."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from eventproc.models import ALONE, IN_BATCH, NOT_BEGUN, Checkpoint, SequenceRange
from eventproc.models._statistics import DeliveryCounters
from spark_integration._sink.records import (
    BatchSummary,
    PartitionReport,
    TaskReport,
    begin_update,
    commit_update,
    covered_to,
    fenced,
    is_handled,
    parse_writer,
    refuse_successor,
    summarize,
)
from tests.unit.spark_integration._sink.sink_bench import TASK


@pytest.mark.parametrize(
    "writer",
    [
        None,
        "",
        "owner/0/x",
        "spark/q/1/r",
        "spark/q/1/r/0/more",
        "other/q/1/r/0",
        "spark/q/one/r/0",
        "spark/q/1/r/zero",
    ],
)
def test_writers_other_than_tasks_are_not_parsed(writer):
    """A processor's owner id may look similar, and its checkpoints fence no driver."""
    assert parse_writer(writer) is None
    assert parse_writer(TASK.writer) == TASK


def report_of(partition_id: str, count: int) -> PartitionReport:
    """Return a report whose counters differ from each other."""
    return PartitionReport(
        partition_id=partition_id,
        replaces=None,
        offset="o1",
        sequence_number=1,
        state=None,
        counters=DeliveryCounters(
            received_count=count,
            handled_count=10 * count,
            retried_count=20 * count,
            dead_lettered_count=30 * count,
            skipped_count=40 * count,
        ),
    )


def test_a_summary_adds_up_the_counts_of_all_partitions_and_tasks():
    """A batch is a replay if one of its tasks is."""
    fresh = TaskReport(
        task=TASK,
        partitions=(report_of("0", 1), report_of("1", 2)),
        repeated_count=3,
        is_replay=False,
    )
    repeated = replace(fresh, partitions=(report_of("2", 4),), repeated_count=5, is_replay=True)

    assert summarize(9, [fresh, repeated]) == BatchSummary(
        query_id="q",
        batch_id=9,
        partition_count=3,
        handled_count=70,
        retried_count=140,
        dead_lettered_count=210,
        skipped_count=280,
        repeated_count=8,
        is_replay=True,
    )
    assert not summarize(9, [fresh]).is_replay
    assert summarize(9, []).query_id is None


STORED = Checkpoint(
    partition_id="0",
    offset="o4",
    sequence_number=4,
    writer="owner/0/pump",
    etag="e",
    last_modified=datetime(2026, 1, 1, tzinfo=UTC),
)


@pytest.mark.parametrize(
    "found", [replace(STORED, offset=None), replace(STORED, sequence_number=None)]
)
def test_a_checkpoint_without_a_whole_position_is_not_written_back(found):
    """Some .NET versions write such; what its own position means is not known."""
    assert begin_update("0", found, 5, TASK) is None


def test_the_partitions_first_event_has_a_begin_record_without_an_earlier_position():
    """Its position is before the first event. It replaces a checkpoint that has no number."""
    for found in (None, replace(STORED, sequence_number=None)):
        update = begin_update("0", found, 0, TASK)

        assert update is not None
        assert (update.offset, update.sequence_number, update.replaces) == ("-1", -1, found)


def test_a_checkpoint_without_a_sequence_number_covers_only_its_completed_ranges():
    """And without these it covers no event."""
    unnumbered = replace(STORED, sequence_number=None)
    with_ranges = replace(unnumbered, completed=(SequenceRange(3, 4),))

    assert [covered_to(unnumbered), covered_to(with_ranges)] == [-1, 4]
    assert [is_handled(number, unnumbered) for number in (0, 4)] == [False, False]
    assert [covered_to(STORED), is_handled(4, STORED), is_handled(5, STORED)] == [4, True, False]


@pytest.mark.parametrize(
    ("before", "marked"), [(NOT_BEGUN, IN_BATCH), (IN_BATCH, IN_BATCH), (ALONE, ALONE)]
)
def test_a_begin_record_marks_the_events_after_it_as_delivered(before, marked):
    """An isolation that a processor left is kept: it gives up events that were alone."""
    update = begin_update("0", replace(STORED, isolation=before), 5, TASK)

    assert update is not None
    assert (update.sequence_number, update.isolation) == (4, marked)


@pytest.mark.parametrize(
    "writer",
    [
        replace(TASK, query_id="other", batch_id=99),
        replace(TASK, batch_id=6, task=1),
        replace(TASK, run_id="earlier", task=1),
    ],
)
def test_checkpoints_of_other_queries_and_of_earlier_runs_refuse_no_task(writer):
    """An earlier batch or run may have had the partition in another task."""
    refuse_successor(replace(STORED, writer=writer.writer, isolation=IN_BATCH), TASK)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (replace(STORED, sequence_number=9), "by 'owner/0/pump' in the meantime and is at 9"),
        (replace(STORED, writer=None), "by 'a processor of an Azure SDK' in the meantime"),
        (None, "was deleted; 1 is not written over it"),
    ],
)
def test_the_error_of_a_fenced_commit_says_what_is_stored_now(found, words):
    """Processors of the Azure SDKs write no name of a writer."""
    update = commit_update(TASK, report_of("0", 1))

    assert words in str(fenced(update, found))
