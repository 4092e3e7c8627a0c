"""Logs on disk: what was written is read again, wherever the last write was cut off."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.emulator import EmulatorConfiguration, HubConfiguration, Retention, hubs_of
from eventproc.emulator._amqp.encoding import encode
from eventproc.emulator._amqp.message import draft_of
from eventproc.emulator._amqp.refusal import RefusedError
from eventproc.emulator._amqp.values import Described, ULong
from eventproc.emulator._hub.hub import Namespace
from eventproc.emulator._hub.log import PartitionLog, PositionKind, StartPosition
from eventproc.emulator._hub.persistence import PartitionFile, partition_path
from eventproc.errors import ConfigurationError

sizes = st.lists(st.lists(st.integers(0, 200), min_size=1, max_size=4), max_size=6)


def drafts(lengths):
    """Events of these sizes."""
    return [draft_of(encode(Described(ULong(0x75), b"x" * length))) for length in lengths]


def write(path, batches, *, sync=False):
    """Write batches to a log on disk; return the log in memory."""
    file = PartitionFile(path, sync=sync)
    log = file.load(1)
    for now_ms, lengths in enumerate(batches):
        events = log.place(drafts(lengths), now_ms)
        file.append(events)
        log.append(events)
    file.close()
    return log


def load(path):
    """Read a log from disk, and close the file."""
    file = PartitionFile(path)
    log = file.load(2)
    file.close()
    return log


def everything(log: PartitionLog):
    """Every event of a log."""
    return log.read(0, 10**6, 10**9)


@given(batches=sizes, sync=st.booleans())
def test_a_log_is_the_same_after_a_restart(tmp_path_factory, batches, sync):
    """Its events, and the numbers that come next."""
    path = tmp_path_factory.mktemp("log") / "0.log"
    written = write(path, batches, sync=sync)

    loaded = load(path)

    assert everything(loaded) == everything(written)
    assert loaded.properties() == written.properties()
    assert loaded.next_offset == written.next_offset


@given(batches=sizes.filter(bool), data=st.data())
def test_a_file_that_was_cut_off_keeps_its_complete_records(tmp_path_factory, batches, data):
    """Wherever it was cut. Writing continues after the last complete record."""
    path = tmp_path_factory.mktemp("log") / "0.log"
    written = everything(write(path, batches))
    raw = path.read_bytes()
    head = len(raw) - sum(len(event.payload) + 32 for event in written)
    cut = data.draw(st.integers(head, len(raw)))
    garbage = data.draw(st.binary(max_size=50))
    path.write_bytes(raw[:cut] + garbage)

    loaded = everything(load(path))
    restarted = everything(write(path, [[7]]))

    assert loaded == written[: len(loaded)]
    assert sum(len(event.payload) + 32 for event in written[: len(loaded) + 1]) > cut - head or (
        len(loaded) == len(written)
    )
    assert restarted[:-1] == loaded
    assert [event.sequence_number for event in restarted] == list(range(len(loaded) + 1))


def test_a_log_ends_before_a_record_with_a_wrong_checksum(tmp_path):
    """Neither that record nor a later one is delivered."""
    path = tmp_path / "0.log"
    written = everything(write(path, [[10], [20], [30]]))
    raw = bytearray(path.read_bytes())
    raw[-100] ^= 1
    path.write_bytes(raw)

    loaded = everything(load(path))

    assert loaded == written[: len(loaded)]
    assert len(loaded) < 3


def test_records_after_a_damaged_one_never_come_back(tmp_path):
    """Not even if the next write is exactly as long as the damaged record."""
    path = tmp_path / "0.log"
    first, second, _ = everything(write(path, [[10], [20], [30]]))
    raw = bytearray(path.read_bytes())
    raw[raw.index(second.payload)] ^= 1
    path.write_bytes(raw)

    restarted = everything(write(path, [[20]]))

    assert everything(load(path)) == restarted
    assert [event.offset for event in restarted] == [first.offset, second.offset]


def test_numbering_continues_after_all_events_have_expired(tmp_path):
    """Although the file was written anew."""
    path = tmp_path / "0.log"
    file = PartitionFile(path, compact_above=0)
    log = file.load(1)
    events = log.place(drafts([10, 20, 30]), 5)
    file.append(events)
    log.append(events)
    size = path.stat().st_size
    before = log.byte_count
    log.expire(Retention(age_max=timedelta(0)), 6)
    file.expired(before, log)
    file.close()

    loaded = load(path)

    assert len(loaded) == 0
    assert loaded.next_sequence_number == 3
    assert loaded.next_offset == log.next_offset
    assert path.stat().st_size < size


def test_a_file_that_is_not_a_log_is_refused_and_unchanged(tmp_path):
    """The message says to move it away."""
    path = tmp_path / "0.log"
    path.write_text("shopping list\n" * 10)

    with pytest.raises(ConfigurationError, match="move it away"):
        load(path)

    assert path.read_text().startswith("shopping list")


def test_files_of_any_hub_are_inside_the_directory(tmp_path):
    """Names may have dots and spaces."""
    path = partition_path(tmp_path, "..", "0")

    assert path.resolve().is_relative_to(tmp_path)


def configured(directory, partition_count, **settings):
    """A namespace of one hub on disk."""
    hubs = hubs_of({"orders": partition_count})
    return Namespace(EmulatorConfiguration(hubs=hubs, directory=directory, **settings))


def test_the_partition_count_may_grow_but_not_shrink(tmp_path):
    """Events of partitions that are no longer configured would be lost silently."""
    configured(tmp_path, 2).close()
    configured(tmp_path, 4).close()

    with pytest.raises(ConfigurationError, match="cannot shrink"):
        configured(tmp_path, 3)


def test_a_second_emulator_in_a_directory_is_refused(tmp_path):
    """Two would both append to the same files."""
    first = configured(tmp_path, 1)

    with pytest.raises(ConfigurationError, match="another emulator"):
        configured(tmp_path, 1)

    first.close()
    configured(tmp_path, 1).close()


def test_a_hub_keeps_its_creation_time_over_restarts(tmp_path):
    """Like its other properties."""
    first = configured(tmp_path, 1)
    first.close()
    second = configured(tmp_path, 1)
    second.close()

    assert first.hub("orders").created_ms == second.hub("orders").created_ms


@pytest.mark.parametrize("is_kept", [False, True], ids=["in memory", "on disk"])
def test_a_hub_is_as_old_as_configured_until_it_is_created_again(is_kept, tmp_path):
    """A restart with another age changes nothing: the hub keeps its time."""
    now_ms = 1_800_000_000_000
    configuration = EmulatorConfiguration(
        hubs=(HubConfiguration("orders", 1),),
        hub_age=timedelta(hours=1),
        directory=tmp_path if is_kept else None,
    )
    namespace = Namespace(configuration, lambda: now_ms)
    hub = namespace.hub("orders")
    at_first = hub.created_ms
    namespace.close()
    if is_kept:
        namespace = Namespace(replace(configuration, hub_age=timedelta(0)), lambda: now_ms + 5)
        hub = namespace.hub("orders")
    restarted = hub.created_ms
    hub.partition("0").recreate()
    namespace.close()

    assert at_first == restarted == now_ms - 3_600_000
    assert hub.created_ms >= now_ms


@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_event_that_cannot_be_written_is_refused_and_dropped(tmp_path, is_restarted):
    """If the disk is full the producer gets an error, and the file keeps its complete records."""
    resource = pytest.importorskip("resource")
    namespace = configured(tmp_path, 1)
    partition = namespace.hub("orders").partition("0")
    partition.publish(drafts([100]))
    if is_restarted:
        namespace.close()
        namespace = configured(tmp_path, 1)
        partition = namespace.hub("orders").partition("0")
    size = partition_path(tmp_path, "orders", "0").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, before[1]))
    try:
        with pytest.raises(RefusedError, match="Not written"):
            partition.publish(drafts([100_000]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    partition.publish(drafts([200]))
    kept = everything(partition.log)
    namespace.close()

    loaded = everything(load(partition_path(tmp_path, "orders", "0")))

    assert loaded == kept
    assert [event.sequence_number for event in loaded] == [0, 1]


def test_events_that_were_dropped_are_not_restored(tmp_path):
    """By a restart, for example after a test let them expire."""
    namespace = configured(tmp_path, 1)
    partition = namespace.hub("orders").partition("0")
    partition.publish(drafts([1, 2, 3]))
    partition.drop_before(2)
    namespace.close()

    restarted = configured(tmp_path, 1)
    kept = everything(restarted.hub("orders").partition("0").log)
    restarted.close()

    assert [event.sequence_number for event in kept] == [2]


def test_a_position_that_was_valid_is_valid_after_a_restart_without_events(tmp_path):
    """Numbers and offsets go on as well."""
    namespace = configured(tmp_path, 1)
    partition = namespace.hub("orders").partition("0")
    partition.publish(drafts([1, 2]))
    offset = everything(partition.log)[-1].offset
    partition.drop_before(2)
    namespace.close()

    restarted = configured(tmp_path, 1)
    log = restarted.hub("orders").partition("0").log
    begins = log.start_of(StartPosition(PositionKind.OFFSET, offset))
    restarted.close()

    assert (begins, log.next_sequence_number) == (2, 2)


@pytest.mark.parametrize("what", ["retention", "drop", "recreate"])
def test_without_room_to_rewrite_a_file_it_stays_and_later_events_are_kept(tmp_path, what):
    """A restart finds every event that was acknowledged."""
    path = partition_path(tmp_path, "orders", "0")
    limits = Retention(events_max=1 if what == "retention" else None)
    namespace = configured(tmp_path, 1, retention=limits)
    partition = namespace.hub("orders").partition("0")
    partition.publish(drafts([1]))
    path.with_suffix(".new").mkdir()  # The new file cannot be written.
    if what == "retention":
        file = partition._file
        assert file is not None
        file._compact_above = 0
    if what == "drop":
        with pytest.raises(OSError, match="new"):
            partition.drop_before(1)
    if what == "recreate":
        with pytest.raises(OSError, match="new"):
            partition.recreate()
    partition.publish(drafts([2, 3]))
    kept = [event.sequence_number for event in everything(partition.log)]
    namespace.close()
    path.with_suffix(".new").rmdir()
    loaded = [event.sequence_number for event in everything(load(path))]

    assert loaded[-1] == kept[-1] == 2
    assert set(kept) <= set(loaded)
