"""The time until the first event: new processes, from their start to an event in the handler.

    python benchmarks/start.py                       # both receive paths
    python benchmarks/start.py --beside ../other     # and another checkout, with its .venv
    python benchmarks/start.py --format json
    python benchmarks/start.py --quick

Every process is one processor alone in a new group on a hub of four partitions, with events waiting
in each; they take turns, so that all run under the same conditions. ``rebalance_interval`` is 50
ms, because the wait of a new processor for others is not measured here.

- *import*: eventproc, its source and its store;
- *first event*: from before the process was started, with the store in memory or on Azurite;
- *CPU*: of the process until then;
- *times*: the median of the ratios to the first candidate in the same round.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from azure.eventhub import EventData, EventHubProducerClient
from azure.storage.blob import ContainerClient

from benchmarks._rows import Row, options, print_progress, print_rows
from eventproc.emulator import EventHubsEmulator
from eventproc.testing.azurite import Azurite

PARTITIONS: Final = 4
ROUNDS: Final = 11
CONTAINER: Final = "start"
STARTER: Final = Path(__file__).with_name("_starter.py")
TIMEOUT_S: Final = 60

Candidate = tuple[str, Mapping[str, str]]
"""A Python, and additional environment variables."""


def candidates(beside: str | None) -> Mapping[str, Candidate]:
    """Return the candidates by name; the others are compared with the first."""
    found = {
        "eventproc": (sys.executable, {"EVENTPROC_RECEIVE_PATH": "direct"}),
        "eventproc-public": (sys.executable, {"EVENTPROC_RECEIVE_PATH": "public"}),
    }
    if beside:
        found[beside] = (str(Path(beside).absolute() / ".venv/bin/python"), {})
    return found


def run_once(candidate: Candidate, settings: Mapping[str, str]) -> Mapping[str, float]:
    """Run one process; return its figures."""
    python, environment = candidate
    answer = subprocess.run(
        [python, str(STARTER), json.dumps({**settings, "spawned_at_s": time.time()})],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=True,
    )
    figures: Mapping[str, float] = json.loads(answer.stdout)
    return figures


def rows_of(store: str, figures: Mapping[str, Sequence[Mapping[str, float]]]) -> list[Row]:
    """Return the medians for each candidate, and the medians of its ratios to the first one."""
    first = next(iter(figures.values()))
    rows: list[Row] = []
    for name, rounds in figures.items():
        row: dict[str, str | float] = {"store": store, "candidate": name}
        for figure in ("import_s", "first_s", "cpu_s"):
            row[figure] = round(statistics.median(r[figure] for r in rounds), 3)
        for figure in ("import", "first", "cpu"):
            pairs = zip(rounds, first, strict=True)
            ratios = [one[f"{figure}_s"] / other[f"{figure}_s"] for one, other in pairs]
            row[f"{figure}_times"] = round(statistics.median(ratios), 2)
        rows.append(row)
    return rows


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, help=f"by default {ROUNDS}")
    parser.add_argument("--beside", metavar="FOLDER", help="another checkout, after `make venv`")
    args = parser.parse_args()
    rounds = args.rounds or (1 if args.quick else ROUNDS)
    entrants = candidates(args.beside)
    groups = [f"g{n}" for n in range(2 * (rounds + 1) * len(entrants))]
    numbers = count()
    rows: list[Row] = []
    with (
        Azurite() as azurite,
        EventHubsEmulator({"hub": PARTITIONS}, consumer_groups=groups) as emulator,
    ):
        hub = emulator.connection_string_for("hub")
        with EventHubProducerClient.from_connection_string(hub) as producer:
            for partition in range(PARTITIONS):
                producer.send_batch([EventData(b"x" * 100)], partition_id=str(partition))
        with ContainerClient.from_connection_string(azurite.connection_string, CONTAINER) as client:
            client.create_container()
        for store, storage in (("memory", ""), ("Azurite", azurite.connection_string)):
            figures: dict[str, list[Mapping[str, float]]] = defaultdict(list)
            for turn in range(rounds + 1):
                print_progress(f"store {store}: round {turn} of {rounds}")
                for name, candidate in entrants.items():
                    settings = {
                        "hub": hub,
                        "group": groups[next(numbers)],
                        "storage": storage,
                        "container": CONTAINER,
                    }
                    found = run_once(candidate, settings)
                    if turn:  # the first one fills the caches of the disk
                        figures[name].append(found)
            rows += rows_of(store, figures)
    print_rows(rows, args.format, "until the first event")


if __name__ == "__main__":
    main()
