"""A member's line to its driver: it reports, and hears whether to stop."""

import asyncio
from collections.abc import Callable
from typing import Final

from spark_integration.fleet_desk import HOLD_S, STOP
from spark_integration.fleet_order import FleetOrder
from spark_integration.fleet_status import Report, encode

ANSWER_MAX_S: Final = 10.0
"""An answer that takes longer than this is lost; call again."""

RETRY_S: Final = 1.0

TOLD: Final = "the driver said so"
"""The one reason to stop after which nobody is to take its place."""


class FleetLink:
    """Keeps reporting for as long as its task lives."""

    def __init__(
        self,
        order: FleetOrder,
        *,
        report: Callable[[], Report],
        on_answer: Callable[[Report], None],
        on_stop: Callable[[str], None],
    ) -> None:
        self._order = order
        self._report = report
        self._on_answer = on_answer
        self._on_stop = on_stop
        self._heard_at_s = 0.0

    async def keep(self) -> None:
        """Report for ever; a driver that stays out of reach is a reason to stop."""
        loop = asyncio.get_running_loop()
        self._heard_at_s = loop.time()
        patience_s = self._order.driver_patience.total_seconds()
        while True:
            try:
                await self._talk()
            except (OSError, TimeoutError, EOFError):
                if loop.time() - self._heard_at_s > patience_s:
                    self._on_stop("the driver is out of reach")
                await asyncio.sleep(RETRY_S)

    async def _talk(self) -> None:
        """Report over one connection until it breaks."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(ANSWER_MAX_S):
            reader, writer = await asyncio.open_connection(self._order.host, self._order.port)
        try:
            while True:
                report = self._report()
                async with asyncio.timeout(ANSWER_MAX_S):
                    writer.write(encode(report, self._order.token))
                    await writer.drain()
                    answer = await reader.readline()
                if not answer:
                    raise EOFError
                self._heard_at_s = loop.time()
                self._on_answer(report)
                if answer == STOP:
                    self._on_stop(TOLD)
                    await asyncio.sleep(HOLD_S)
        finally:
            writer.close()
