"""A release of Azure's client with other private names: a copy of the installed one, renamed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import azure.eventhub
import pytest

from eventproc.emulator import EventHubsEmulator

PROGRAM = """
import asyncio, logging
from datetime import timedelta
from azure.eventhub import EventData, EventHubProducerClient
from eventproc.models import EventPosition
from eventproc.sources.eventhubs import EventHubSource
import azure.eventhub, os
logging.basicConfig(format="%(message)s", level=logging.WARNING)
hub = os.environ["HUB"]
with EventHubProducerClient.from_connection_string(hub) as producer:
    producer.send_batch([EventData(b"one")], partition_id="0")
async def main():
    async with EventHubSource.from_connection_string(hub) as source:
        receiver = await source.open_receiver("$Default", "0", EventPosition.earliest())
        events = []
        while not events:
            events = await receiver.receive(events_max=1, wait_max=timedelta(seconds=10))
        print(azure.eventhub.__file__, events[0].body)
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("place", "old", "new"),
    [
        ("", r"\b_amqp_transport\b", "_wire_format"),
        ("_pyamqp/aio", r"\bself\._transport\b", "self._wire"),
        ("_pyamqp/aio", r"\bself\.reader\b", "self.stream"),
        ("", r"\b_create_handler\b", "_make_handler"),
        ("", r"\._link\b", "._the_link"),
    ],
)
def test_a_private_name_that_is_gone_costs_one_warning_and_no_event(tmp_path, place, old, new):
    """The source reads by the public methods."""
    copy = tmp_path / "azure" / "eventhub"
    shutil.copytree(Path(azure.eventhub.__file__).parent, copy)
    for file in (copy / place).rglob("*.py"):
        file.write_text(re.sub(old, new, file.read_text()))
    with EventHubsEmulator({"orders": 1}) as emulator:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
                "HUB": emulator.connection_string_for("orders"),
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    warnings = [line for line in ended.stderr.splitlines() if "direct_receive_unavailable" in line]
    assert ended.stdout == f"{copy / '__init__.py'} b'one'\n", ended.stderr
    assert len(warnings) == 1
