"""Play real processes that share partitions of very different load, and print how even they are.

64 partitions whose load falls by Zipf's law (exponent 1.1), 8 processes, ``Published:ByLoad``: from
minute ten on, the busiest process should have at most 1.2 times the larger of the mean and the
heaviest partition, and at most two partitions for each process should move in an hour.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

from azure.eventhub import EventData, EventHubProducerClient

from eventproc.emulator import EventHubsEmulator

PARTITIONS, PROCESSES, EXPONENT = 64, 8, 1.1
EVENT_S = 0.02
Minutes = list[dict[str, Any]]
"""For each minute, what each worker printed in it."""

BUSY = 2.0
"""Seconds of handler time in a second, of all partitions together."""


def rates(seed: int) -> dict[str, float]:
    """Return the events a second of each partition."""
    weights = [1 / (rank + 1) ** EXPONENT for rank in range(PARTITIONS)]
    Random(seed).shuffle(weights)
    total = sum(weights)
    return {str(p): BUSY / EVENT_S * weight / total for p, weight in enumerate(weights)}


def publish(conn_str: str, rate: dict[str, float], ended: threading.Event) -> None:
    """Publish to each partition at its rate, until the end."""
    sent = dict.fromkeys(rate, 0)
    began_s = time.monotonic()
    with EventHubProducerClient.from_connection_string(conn_str) as producer:
        while not ended.wait(1):
            passed_s = time.monotonic() - began_s
            for partition_id, per_s in rate.items():
                count = int(passed_s * per_s) - sent[partition_id]
                if count:
                    events: list[Any] = [EventData(b"x") for _ in range(count)]
                    producer.send_batch(events, partition_id=partition_id)
                    sent[partition_id] += count


def read_lines(process: subprocess.Popen[str], name: str, minutes: Minutes) -> None:
    """Add each line of a worker to the minute in which it came."""
    assert process.stdout is not None
    for line in process.stdout:
        reading = json.loads(line)
        entry = minutes[-1].setdefault(name, {"busy_s": 0.0, "partitions": {}, "moves": 0})
        entry["busy_s"] += sum(reading["busy_s"].values())
        for p, busy_s in reading["busy_s"].items():
            entry["partitions"][p] = entry["partitions"].get(p, 0.0) + busy_s
        entry["moves"] = reading["moves"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=20)
    parser.add_argument("--placement", default="Published:ByLoad")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    ended = threading.Event()
    minutes: Minutes = [{}]
    processes = []
    with tempfile.TemporaryDirectory() as folder, EventHubsEmulator({"hub": PARTITIONS}) as hub:
        rate = rates(given.seed)
        address = hub.connection_string_for("hub")
        threading.Thread(target=publish, args=(address, rate, ended), daemon=True).start()
        for number in range(PROCESSES):
            name = f"p{number}"
            store = str(Path(folder) / "group.db")
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.integration.by_load.worker"),
                    *(address, store, name, given.placement),
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
            processes.append(process)
            threading.Thread(target=read_lines, args=(process, name, minutes), daemon=True).start()
        moved = 0
        for minute in range(1, given.minutes + 1):
            time.sleep(60)
            shown = minutes[-1]
            minutes.append({})
            moved = report(minute, shown, moved)
        ended.set()
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)


def report(minute: int, shown: dict[str, Any], moved_before: int) -> int:
    """Print one minute; return how many partitions were claimed so far."""
    loads = {name: entry["busy_s"] for name, entry in shown.items()}
    heaviest = max(
        (busy_s for entry in shown.values() for busy_s in entry["partitions"].values()), default=0.0
    )
    mean = sum(loads.values()) / PROCESSES
    moved: int = sum(entry["moves"] for entry in shown.values())
    bound = max(mean, heaviest) or 1.0
    print(
        f"minute {minute}: busiest {max(loads.values(), default=0) / bound:.2f} times the larger "
        f"of the mean ({mean:.1f} s) and the heaviest partition ({heaviest:.1f} s); "
        f"{moved - moved_before} partitions changed hands",
        flush=True,
    )
    return moved


if __name__ == "__main__":
    main()
