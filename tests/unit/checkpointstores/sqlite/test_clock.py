"""The SQLite store's clock: all processes of a machine agree on it, despite their wall clocks."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.sqlite import _clock as _sqlite_clock
from checkpointstores.sqlite import _records as records
from checkpointstores.sqlite._clock import Boot, HostClock
from eventproc.models import ConsumerGroup, OwnershipClaim

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)


def in_us(time: timedelta) -> int:
    """The number of microseconds."""
    return time // timedelta(microseconds=1)


@dataclass
class Machine:
    """What the processes of one machine share."""

    uptime: timedelta = timedelta(hours=1)
    wall: datetime = NOON
    boot_id: str = "first"

    def wait(self, time: timedelta) -> None:
        """Let time pass."""
        self.uptime += time
        self.wall += time

    def reboot(self, off: timedelta) -> None:
        """Be off for this time, and start again."""
        self.wall += off
        self.uptime = timedelta(seconds=5)
        self.boot_id += "+" if self.boot_id else ""


@dataclass
class Process(HostClock):
    """One process, whose clocks may be off."""

    machine: Machine
    wall_off: timedelta = timedelta(0)
    uptime_off: timedelta = timedelta(0)
    knows_boot: bool = True

    def wall_us(self) -> int:
        return in_us(self.machine.wall + self.wall_off - datetime(1970, 1, 1, tzinfo=UTC))

    def elapsed_us(self) -> int:
        return in_us(self.machine.uptime + self.uptime_off)

    def boot(self) -> Boot | None:
        if not self.knows_boot:
            return None
        return Boot(boot_id=self.machine.boot_id, began_us=in_us(self.uptime_off))


@pytest.fixture
def machine() -> Machine:
    """A machine that was started an hour ago."""
    return Machine()


@pytest.fixture
def path(tmp_path):
    """The path of the store's file."""
    return tmp_path / "store.db"


async def claimed_at(path, process: HostClock) -> datetime:
    """Let a process write a record; return the time in it."""
    async with SqliteCheckpointStore(path, _host_clock=process) as store:
        found = await store.list_ownership(GROUP)
        etag = found.ownerships[0].etag if found.ownerships else None
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=etag)
        [result] = await store.claim_ownership(GROUP, [claim])
    assert result.ownership is not None
    return result.ownership.last_modified


async def listed_at(path, process: HostClock) -> datetime:
    """Let a process list records; return the time of the listing."""
    async with SqliteCheckpointStore(path, _host_clock=process) as store:
        as_of = (await store.list_ownership(GROUP)).as_of
    assert as_of is not None
    return as_of


@pytest.mark.parametrize("off", [TEN_MINUTES, -TEN_MINUTES, timedelta(days=20_000)])
async def test_a_wall_clock_that_is_off_does_not_matter(machine, path, off):
    """Two processes of one machine agree on the store's time."""
    written = await claimed_at(path, Process(machine))
    machine.wait(timedelta(seconds=20))
    listed = await listed_at(path, Process(machine, wall_off=off))

    assert written == NOON
    assert listed - written == timedelta(seconds=20)


async def test_setting_the_wall_clock_does_not_change_the_stores_time(machine, path):
    """So leases last as long as before."""
    written = await claimed_at(path, Process(machine))
    machine.wait(timedelta(seconds=20))
    machine.wall += TEN_MINUTES
    listed = await listed_at(path, Process(machine))

    assert listed - written == timedelta(seconds=20)


async def test_a_process_in_a_time_namespace_agrees_on_the_time(machine, path):
    """Its uptime has another beginning, which the system reports."""
    written = await claimed_at(path, Process(machine))
    machine.wait(timedelta(seconds=20))
    listed = await listed_at(path, Process(machine, uptime_off=TEN_MINUTES))

    assert listed - written == timedelta(seconds=20)


async def test_a_process_with_faked_clocks_follows_the_others(machine, path):
    """It begins at the time of the newest record, and is never ahead of the other processes."""
    faked = Process(machine, wall_off=TEN_MINUTES, uptime_off=timedelta(days=20_000))
    faked.knows_boot = False
    async with SqliteCheckpointStore(path, _host_clock=Process(machine)) as store:
        [first] = await store.claim_ownership(GROUP, [CLAIM])
        machine.wait(timedelta(seconds=20))
        async with SqliteCheckpointStore(path, _host_clock=faked) as other:
            entered_at = (await other.list_ownership(GROUP)).as_of
            machine.wait(timedelta(seconds=5))
            later = (await other.list_ownership(GROUP)).as_of
            claim = OwnershipClaim(partition_id="1", owner_id="a", expected_etag=None)
            [second] = await store.claim_ownership(GROUP, [claim])
            caught_up = (await other.list_ownership(GROUP)).as_of

    assert first.ownership is not None
    assert second.ownership is not None
    assert entered_at == first.ownership.last_modified
    assert later == entered_at + timedelta(seconds=5)
    assert caught_up == second.ownership.last_modified == NOON + timedelta(seconds=25)


async def test_with_faked_clocks_only_records_still_expire(machine, path):
    """Their rate is right, which is enough."""
    faked = Process(machine, uptime_off=timedelta(days=20_000), knows_boot=False)
    written = await claimed_at(path, faked)
    async with SqliteCheckpointStore(path, _host_clock=faked) as store:
        machine.wait(TEN_MINUTES)
        listed = (await store.list_ownership(GROUP)).as_of

    assert listed is not None
    assert listed - written == TEN_MINUTES


@pytest.mark.parametrize("boot_id", ["first", ""])
@pytest.mark.parametrize(
    ("wall_off", "age"), [(timedelta(0), timedelta(hours=2)), (-timedelta(hours=9), timedelta(0))]
)
async def test_after_a_reboot_the_wall_clock_decides_how_long_it_took(
    machine, path, boot_id, wall_off, age
):
    """No process survived it. If the wall clock was set back, the store's time stands still."""
    machine.boot_id = boot_id
    written = await claimed_at(path, Process(machine))
    machine.reboot(off=timedelta(hours=2))
    listed = await listed_at(path, Process(machine, wall_off=wall_off))
    machine.wait(timedelta(seconds=20))
    other = await listed_at(path, Process(machine))

    assert listed - written == age
    assert other - listed == timedelta(seconds=20)


async def test_the_stores_time_in_one_process_never_goes_back(machine, path):
    """Even if the clocks of the process do."""
    process = Process(machine)
    async with SqliteCheckpointStore(path, _host_clock=process) as store:
        [claim] = await store.claim_ownership(GROUP, [CLAIM])
        process.uptime_off = -TEN_MINUTES
        listed = (await store.list_ownership(GROUP)).as_of

    assert claim.ownership is not None
    assert listed == claim.ownership.last_modified


async def test_a_process_that_cannot_read_the_uptime_logs_it(machine, path, caplog):
    """Its time is behind until it sees other processes write."""
    await listed_at(path, Process(machine, knows_boot=False))

    assert [getattr(r, "event", "") for r in caplog.records] == ["store_clock_followed"]


def test_the_clocks_of_this_machine_agree_with_its_uptime():
    """Unless they are faked."""
    host = HostClock()
    before = host.elapsed_us()
    boot = host.boot()

    assert boot is not None
    assert boot == host.boot()
    assert host.elapsed_us() >= before


@pytest.mark.parametrize("off_s", [-2.0, 600.0, 1.8e9])
def test_a_clock_that_contradicts_the_uptime_is_not_used(tmp_path, monkeypatch, off_s):
    """A preloaded library fakes clocks, and some containers an uptime; none fakes both."""
    uptime = tmp_path / "uptime"
    uptime.write_text(f"{HostClock().elapsed_us() / 1e6 - off_s:.2f} 1.0\n")
    monkeypatch.setattr(_sqlite_clock, "_UPTIME", uptime)

    assert HostClock().boot() is None


def test_the_offset_of_a_time_namespace_is_read(tmp_path, monkeypatch):
    """From the system."""
    offsets = tmp_path / "timens_offsets"
    offsets.write_text("monotonic           600         0\nboottime           -600 500000000\n")
    monkeypatch.setattr(_sqlite_clock, "_NAMESPACE_OFFSETS", offsets)
    boot = HostClock().boot()

    assert boot is not None
    assert boot.began_us == -599_500_000


async def test_a_process_with_faked_clocks_counts_on_from_the_time_it_read(machine, path):
    """Between writes of others its own clock counts, from the later of both times."""
    follower = Process(machine, knows_boot=False)
    async with (
        SqliteCheckpointStore(path, _host_clock=Process(machine)) as store,
        SqliteCheckpointStore(path, _host_clock=follower) as other,
    ):
        machine.wait(timedelta(seconds=100))
        follower.uptime_off = -timedelta(seconds=100)
        await store.claim_ownership(GROUP, [CLAIM])
        caught_up = (await other.list_ownership(GROUP)).as_of
        machine.wait(timedelta(seconds=5))
        later = (await other.list_ownership(GROUP)).as_of

    assert caught_up == NOON + timedelta(seconds=100)
    assert later == NOON + timedelta(seconds=105)


@pytest.mark.parametrize("kind", ["ownership", "members"])
async def test_a_listing_has_the_time_at_which_it_began(path, machine, monkeypatch, kind):
    """A reading that takes long makes no record look older than it was."""
    async with SqliteCheckpointStore(path, _host_clock=Process(machine)) as store:
        before = (await getattr(store, f"list_{kind}")(GROUP)).as_of
        query = getattr(records, f"list_{kind}")

        def list_slowly(db, group):
            machine.wait(timedelta(seconds=50))
            return query(db, group)

        monkeypatch.setattr(records, f"list_{kind}", list_slowly)
        listed = await getattr(store, f"list_{kind}")(GROUP)

        assert listed.as_of == before
