"""A resource pump under a lease that a test extends, and a handler that does what the test says."""

import asyncio
from datetime import timedelta
from functools import wraps

from eventproc import Backoff, ResourceHandler, ResourceProcessorConfig
from eventproc._base.logs import get_logger
from eventproc._group.pumps.pump import Grant
from eventproc._group.pumps.stop_scope import StopScope
from eventproc._group.resources.resource_pump import ResourcePump
from eventproc.models import Member
from eventproc.testing._virtual_time import run_virtual
from tests.scenarios.group_setup import seconds


def virtual(scenario):
    """Run a test on virtual time, with a fixture of its own."""

    @wraps(scenario)
    def test(*args, **named):
        return run_virtual(scenario(*args, **named))

    return test


class StubHandler(ResourceHandler):
    """Holds as long as its test says, and notes what happens to it."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.calls = []
        self.holds = []
        """How each call of ``hold`` ends: a number of seconds, or an error after a second."""

        self.drain_s = 0.0
        self.close_s = 0.0

    def note(self, what):
        """Note something with its time."""
        self.calls.append((what, round(self.loop.time(), 3)))

    async def hold(self, held):
        """End as the test says; without a plan, run for ever."""
        self.held = held
        self.note("hold")
        how = self.holds.pop(0) if self.holds else float("inf")
        try:
            if isinstance(how, Exception):
                await seconds(1)
                raise how
            await asyncio.sleep(min(how, 1e6))
            self.note("return")
        except asyncio.CancelledError:
            self.note("cancelled")
            await asyncio.sleep(self.close_s)
            raise

    async def drain(self, held):
        """Take the time that the test says."""
        self.note("drain")
        if self.drain_s < 0:
            raise OSError("cannot drain")
        await seconds(self.drain_s)
        self.note("drained")


class PumpFixture:
    """A pump under a lease that the test extends."""

    def __init__(self, **settings):
        self.loop = asyncio.get_running_loop()
        self.trusted_until_s = float("inf")
        self.ready = asyncio.Event()
        self.ready.set()
        self.handler = StubHandler()
        settings = {"handler_backoff": Backoff(maximum=timedelta(seconds=10)), **settings}
        self.pump = ResourcePump(
            Grant(
                name="a%2Fb",
                epoch=7,
                member=Member(owner_id="me", incarnation="1"),
                stop=StopScope(lambda: self.trusted_until_s - self.loop.time()),
                ready=self._ready,
                verify=self._verify,
                call=None,  # type: ignore[arg-type]
            ),
            self.handler,
            config=ResourceProcessorConfig(**settings),
            wait_s=lambda count: 2.0 * count,
            log=get_logger("test"),
        )
        self.running = asyncio.create_task(self.pump.run())

    async def _ready(self):
        await self.ready.wait()

    async def _verify(self):
        raise AssertionError("a resource has no checkpoint to verify")

    @property
    def calls(self):
        """What happened to the handler, and when."""
        return self.handler.calls

    async def ended(self):
        """Wait until the pump has ended; return why, and when."""
        return await self.running, round(self.loop.time(), 3)
