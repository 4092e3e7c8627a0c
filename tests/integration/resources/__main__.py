"""Show that a fence holds, and for how long names are closed: ``make fence EVENTS=1000``.

The events are shared by four groups that run at the same time: both stores, both lease modes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random

from azure.storage.blob import ContainerClient

from eventproc import LeaseMode
from eventproc.testing.servers.azurite import Azurite
from tests.integration.resources.fence import EXPIRATION, INTERVAL, REBALANCE
from tests.integration.resources.findings import Findings, find, row
from tests.integration.resources.story import Story

CONTAINER = "fenced"


@contextmanager
def _stores(place: Path) -> Iterator[dict[str, str]]:
    """Yield the stores of the four groups."""
    with Azurite(location=place) as azurite:
        stores = {}
        for mode in LeaseMode:
            name = f"{CONTAINER}-{mode.name.lower()}"
            stores[f"sqlite {mode.name}"] = str(place / f"{name}.db")
            stores[f"azurite {mode.name}"] = f"{name} {azurite.connection_string}"
            with ContainerClient.from_connection_string(azurite.connection_string, name) as client:
                client.create_container()
        yield stores


def _play(group: str, store: str, place: Path, count: int, seed: int) -> tuple[Story, Findings]:
    folder = place / group.replace(" ", "-")
    folder.mkdir()
    story = Story(folder, store, group.split()[1], Random(f"{seed} {group}"))
    story.play(count, lambda line: print(f"{group}: {line}", flush=True))
    return story, find(story.fence.messages, story.processes)


def main() -> int:
    """Return 1 if there are violations."""
    parser = argparse.ArgumentParser(prog="make fence", description=__doc__)
    parser.add_argument("--events", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (not of the timing)")
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="eventproc-fence-"))
    began_s = time.monotonic()
    with _stores(place) as stores, ThreadPoolExecutor(len(stores)) as pool:
        count = -(-arguments.events // len(stores))
        runs = {
            group: pool.submit(_play, group, store, place, count, arguments.seed)
            for group, store in stores.items()
        }
    # A group that failed must not hide what the others found.
    errors = {group: error for group, run in runs.items() if (error := run.exception())}
    done = {group: run.result() for group, run in runs.items() if group not in errors}
    for group, error in errors.items():
        print(f"{group} failed: {error!r}", file=sys.stderr)
    print(
        f"expiration {EXPIRATION.total_seconds()} s, interval {INTERVAL.total_seconds()} s, "
        f"rebalance interval {REBALANCE.total_seconds()} s; {time.monotonic() - began_s:.0f} s"
    )
    for group, (story, found) in done.items():
        print(f"\n{group}: {dict(story.events)}, slack {story.slack_s:.2f} s")
        print(f"accepted {found.accepted_count}, refused {len(found.refused)}", end="")
        print(f", at most {max(found.after_wake_s, default=0):.3f} s after a wake")
        print("| closed by | changes | median | p99 | max |\n|---|---|---|---|---|")
        for cause, times_s in sorted(found.closed_s.items()):
            print(row(cause, times_s))
        for violation in found.violations[:20]:
            print(violation, file=sys.stderr)
    violations = sum(len(found.violations) for _, found in done.values())
    events = sum(story.events.total() for story, _ in done.values())
    print(f"\n{events} events, {violations} violations, {len(errors)} groups failed")
    return 1 if violations or errors else 0


if __name__ == "__main__":
    sys.exit(main())
