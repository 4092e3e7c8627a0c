"""Azure's JavaScript client ``@azure/event-hubs``, another implementation of the protocol.

Runs if its packages are installed: ``npm ci`` in ``tests/integration/emulator/javascript``.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "javascript"
NODE = shutil.which("node")


@pytest.mark.skipif(
    NODE is None or not (HERE / "node_modules").exists(),
    reason="needs Node and `npm ci` in tests/integration/emulator/javascript",
)
def test_the_javascript_client_works_with_the_emulator(shared_emulator, hub):
    """Batches, keys, properties, an event of 900 KB, management requests, lag, and errors."""
    ran = subprocess.run(
        [str(NODE), "round_trip.js", shared_emulator.connection_string, hub],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr

    seen = json.loads(ran.stdout)
    keyed = [event for event in seen["events"] if event.get("partitionKey") == "key"]
    large = [event for event in seen["events"] if event["body"] == 900_000]

    assert seen["properties"]["partitionIds"] == ["0", "1", "2", "3"]
    assert seen["partition"]["isEmpty"] is False
    assert [event["body"]["index"] for event in keyed] == list(range(10))
    assert [event["correlationId"] for event in keyed] == [f"c{index}" for index in range(10)]
    assert {event["properties"]["text"] for event in keyed} == {"naïve"}
    assert len(large) == 1
    assert seen["errors"] == {
        "hub": "MessagingEntityNotFoundError",
        "partition": "ArgumentOutOfRangeError",
        "send": "ArgumentOutOfRangeError",
    }
