"""The SQLite store's clock: what the processes of a machine agree on, and what moves it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from checkpointstores.sqlite import SqliteCheckpointStore
from checkpointstores.sqlite import clock as _sqlite_clock
from checkpointstores.sqlite.clock import Boot, HostClock
from eventproc.models import ConsumerGroup, OwnershipClaim

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")
CLAIM = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=None)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)


def in_us(time: timedelta) -> int:
    """So many microseconds."""
    return time // timedelta(microseconds=1)


@dataclass
class Machine:
    """What the processes of one machine have in common."""

    uptime: timedelta = timedelta(hours=1)
    wall: datetime = NOON
    boot_id: str = "first"

    def wait(self, time: timedelta) -> None:
        """Let time pass."""
        self.uptime += time
        self.wall += time

    def reboot(self, off: timedelta) -> None:
        """Stop, rest, and start."""
        self.wall += off
        self.uptime = timedelta(seconds=5)
        self.boot_id += "+" if self.boot_id else ""


@dataclass
class Process(HostClock):
    """One process: what its clocks say may be off, each by something of its own."""

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
    """A machine that runs since an hour."""
    return Machine()


@pytest.fixture
def path(tmp_path):
    """Where the file is."""
    return tmp_path / "store.db"


async def claimed_at(path, process: HostClock) -> datetime:
    """Let a process write a record; return the time on it."""
    async with SqliteCheckpointStore(path, host_clock=process) as store:
        found = await store.list_ownership(GROUP)
        etag = found.ownerships[0].etag if found.ownerships else None
        claim = OwnershipClaim(partition_id="0", owner_id="a", expected_etag=etag)
        [result] = await store.claim_ownership(GROUP, [claim])
    assert result.ownership is not None
    return result.ownership.last_modified


async def seen_at(path, process: HostClock) -> datetime:
    """Let a process look; return the time of its listing."""
    async with SqliteCheckpointStore(path, host_clock=process) as store:
        as_of = (await store.list_ownership(GROUP)).as_of
    assert as_of is not None
    return as_of


@pytest.mark.parametrize("off", [TEN_MINUTES, -TEN_MINUTES, timedelta(days=20_000)])
async def test_a_wall_clock_that_is_off_changes_nothing(machine, path, off):
    """Two processes of one machine agree, whatever one of them takes for the time of day."""
    written = await claimed_at(path, Process(machine))
    machine.wait(timedelta(seconds=20))
    seen = await seen_at(path, Process(machine, wall_off=off))

    assert written == NOON
    assert seen - written == timedelta(seconds=20)


async def test_a_wall_clock_that_is_set_moves_nothing(machine, path):
    """The administrator, or NTP, sets it under all of them; leases live as long as before."""
    written = await claimed_at(path, Process(machine))
    machine.wait(timedelta(seconds=20))
    machine.wall += TEN_MINUTES
    seen = await seen_at(path, Process(machine))

    assert seen - written == timedelta(seconds=20)


async def test_a_process_in_a_time_namespace_agrees(machine, path):
    """Its uptime begins elsewhere, and the system says where."""
    written = await claimed_at(path, Process(machine))
    machine.wait(timedelta(seconds=20))
    seen = await seen_at(path, Process(machine, uptime_off=TEN_MINUTES))

    assert seen - written == timedelta(seconds=20)


async def test_a_process_with_faked_clocks_follows_the_others(machine, path):
    """It begins where the newest record stands, and is never ahead of those that know better."""
    faked = Process(machine, wall_off=TEN_MINUTES, uptime_off=timedelta(days=20_000))
    faked.knows_boot = False
    async with SqliteCheckpointStore(path, host_clock=Process(machine)) as store:
        [first] = await store.claim_ownership(GROUP, [CLAIM])
        machine.wait(timedelta(seconds=20))
        async with SqliteCheckpointStore(path, host_clock=faked) as other:
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


async def test_faked_clocks_alone_still_see_that_somebody_died(machine, path):
    """The rate is right, and that is all that an expiration needs."""
    faked = Process(machine, uptime_off=timedelta(days=20_000), knows_boot=False)
    written = await claimed_at(path, faked)
    async with SqliteCheckpointStore(path, host_clock=faked) as store:
        machine.wait(TEN_MINUTES)
        seen = (await store.list_ownership(GROUP)).as_of

    assert seen is not None
    assert seen - written == TEN_MINUTES


@pytest.mark.parametrize("boot_id", ["first", ""])
@pytest.mark.parametrize(
    ("wall_off", "age"), [(timedelta(0), timedelta(hours=2)), (-timedelta(hours=9), timedelta(0))]
)
async def test_after_a_reboot_the_wall_clock_says_how_long_it_was_off(
    machine, path, boot_id, wall_off, age
):
    """Nobody of the group survived it. Where the wall clock was set back, time stands still."""
    machine.boot_id = boot_id
    written = await claimed_at(path, Process(machine))
    machine.reboot(off=timedelta(hours=2))
    seen = await seen_at(path, Process(machine, wall_off=wall_off))
    machine.wait(timedelta(seconds=20))
    other = await seen_at(path, Process(machine))

    assert seen - written == age
    assert other - seen == timedelta(seconds=20)


async def test_time_in_one_process_never_goes_back(machine, path):
    """Also where its own clocks do."""
    process = Process(machine)
    async with SqliteCheckpointStore(path, host_clock=process) as store:
        [claim] = await store.claim_ownership(GROUP, [CLAIM])
        process.uptime_off = -TEN_MINUTES
        seen = (await store.list_ownership(GROUP)).as_of

    assert claim.ownership is not None
    assert seen == claim.ownership.last_modified


async def test_who_cannot_tell_the_uptime_says_so(machine, path, caplog):
    """Its view of the others lags until it sees them write."""
    await seen_at(path, Process(machine, knows_boot=False))

    assert [getattr(r, "event", "") for r in caplog.records] == ["store_clock_followed"]


def test_the_clocks_of_this_machine_agree_with_its_uptime():
    """As long as nobody fakes them."""
    host = HostClock()
    before = host.elapsed_us()
    boot = host.boot()

    assert boot is not None
    assert boot == host.boot()
    assert host.elapsed_us() >= before


@pytest.mark.parametrize("off_s", [-2.0, 600.0, 1.8e9])
def test_a_clock_that_the_system_contradicts_is_not_believed(tmp_path, monkeypatch, off_s):
    """A preloaded library fakes clocks, and some containers an uptime; neither fakes both."""
    uptime = tmp_path / "uptime"
    uptime.write_text(f"{HostClock().elapsed_us() / 1e6 - off_s:.2f} 1.0\n")
    monkeypatch.setattr(_sqlite_clock, "_UPTIME", uptime)

    assert HostClock().boot() is None


def test_a_time_namespace_is_taken_into_account(tmp_path, monkeypatch):
    """Its offset is what the system says of it."""
    offsets = tmp_path / "timens_offsets"
    offsets.write_text("monotonic           600         0\nboottime           -600 500000000\n")
    monkeypatch.setattr(_sqlite_clock, "_NAMESPACE_OFFSETS", offsets)
    boot = HostClock().boot()

    assert boot is not None
    assert boot.began_us == -599_500_000


async def test_a_follower_goes_on_from_the_time_that_it_read(machine, path):
    """Between two writes of the others its own clock counts, from the later of both times."""
    follower = Process(machine, knows_boot=False)
    async with (
        SqliteCheckpointStore(path, host_clock=Process(machine)) as store,
        SqliteCheckpointStore(path, host_clock=follower) as other,
    ):
        machine.wait(timedelta(seconds=100))
        follower.uptime_off = -timedelta(seconds=100)
        await store.claim_ownership(GROUP, [CLAIM])
        caught_up = (await other.list_ownership(GROUP)).as_of
        machine.wait(timedelta(seconds=5))
        later = (await other.list_ownership(GROUP)).as_of

    assert caught_up == NOON + timedelta(seconds=100)
    assert later == NOON + timedelta(seconds=105)
