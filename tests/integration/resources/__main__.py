"""Show that a fence holds, and for how long names are closed: ``make fence EVENTS=1000``.

The events are shared by two groups that run at the same time, one for each store.
Ctrl+C ends them in order, and shows what was found so far.
"""

import argparse
import gc
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from random import Random

from azure.storage.blob import ContainerClient

from eventproc.testing._azurite import Azurite
from tests.integration.resources.bounds import Bounds
from tests.integration.resources.findings import find
from tests.integration.resources.report import tables, violations
from tests.integration.resources.storm import Storm

CONTAINER = "fenced"
PROGRESS_S = 15.0
SHOWN_MAX = 20
INTERRUPTED = 130


@contextmanager
def _storms(place: Path, seed: int) -> Iterator[dict[str, Storm]]:
    """Yield the two groups, while there is a storage."""
    with Azurite(location=place) as azurite:
        connection = azurite.connection_string
        storms = {}
        with ContainerClient.from_connection_string(connection, CONTAINER) as client:
            client.create_container()
        for kind, store in (
            ("azurite", f"{CONTAINER} {connection}"),
            ("sqlite", str(place / f"{CONTAINER}.db")),
        ):
            folder = place / kind
            folder.mkdir()
            storms[kind] = Storm(folder, store, Random(f"{seed} {kind}"))
        yield storms


def _await(runs: Mapping[str, Future[None]], storms: Mapping[str, Storm]) -> bool:
    """Wait until all storms have ended, and print how far they are; return whether by Ctrl+C."""
    began_s, is_interrupted, pending = time.monotonic(), False, set(runs.values())
    while pending:
        try:
            pending = wait(pending, PROGRESS_S).not_done
            logs = [storm.fence.messages for storm in storms.values()]
            print(
                f"{time.monotonic() - began_s:5.0f} s: "
                f"{sum(storm.events.total() for storm in storms.values())} events, "
                f"{sum(map(len, logs))} messages",
                flush=True,
            )
        except KeyboardInterrupt:
            if is_interrupted:
                raise
            is_interrupted = True
            print("stopping all processes, in order", flush=True)
            for storm in storms.values():
                storm.stop()
    return is_interrupted


def main() -> int:
    """Return 1 if there are violations, or a group failed."""
    parser = argparse.ArgumentParser(prog="make fence", description=__doc__)
    parser.add_argument("--events", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (not of the timing)")
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="eventproc-fence-"))
    print(f"seed {arguments.seed}", flush=True)
    gc.disable()  # The log of messages grows without cycles; a collection would stop the servers.
    with _storms(place, arguments.seed) as storms, ThreadPoolExecutor(len(storms)) as pool:
        count, more = divmod(arguments.events, len(storms))
        runs = {
            group: pool.submit(storm.play, count + (number < more))
            for number, (group, storm) in enumerate(storms.items())
        }
        is_interrupted = _await(runs, storms)
    # A group that failed must not hide what the others found.
    failures = [f"{g} failed: {error!r}" for g, run in runs.items() if (error := run.exception())]
    groups = {}
    for group, storm in storms.items():
        bounds = Bounds(storm.is_on_blobs)
        found = find(storm.fence.messages, storm.processes, bounds, storm.settled_s)
        groups[group] = storm, found, bounds
        wrong = violations(storm, found, bounds)
        failures += [f"{group}: {violation}" for violation in wrong[:SHOWN_MAX]]
        if len(wrong) > SHOWN_MAX:
            failures.append(f"{group}: and {len(wrong) - SHOWN_MAX} more")
        if wrong:
            log = (json.dumps(message) + "\n" for message in storm.fence.messages)
            storm.place.joinpath("messages.jsonl").write_text("".join(log))
    print("", tables(groups), "", sep="\n", flush=True)
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{sum(s.events.total() for s in storms.values())} events, {len(failures)} failures")
    if failures:
        print(f"diaries, logs and messages are kept in {place}", file=sys.stderr)
        return 1
    shutil.rmtree(place)
    return INTERRUPTED if is_interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
