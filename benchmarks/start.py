"""How long a new process takes until its handler has its first event.

    python benchmarks/start.py                  # SQLite and blobs, 1 and 32 partitions
    python benchmarks/start.py --rounds 9

``imports_ms`` is a process that only imports what the program needs, from its start to the last
import; ``first_event_ms`` is the program, from its start to the first call of the handler. Both
take turns; the rows have the medians. Each program begins in a new group, on a hub with two events
in each partition, with the default settings.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from azure.storage.blob import ContainerClient

from benchmarks._hub import emulator_with, equal_events, fill
from benchmarks._rows import Row, options, print_progress, print_rows
from eventproc.testing._azurite import Azurite

IMPORTS: Final = """
from eventproc import EventProcessor, PartitionHandler
from eventproc.sources.eventhubs import EventHubSource
from checkpointstores.{module} import {name}
"""

ENDED: Final = """
import os
os.write(1, b"imported")
os._exit(0)
"""

PROGRAM: Final = """
import os, sys
class First(PartitionHandler):
    async def process_event(self, context, event):
        os.write(1, b"first")
        os._exit(0)
source = EventHubSource.from_connection_string(sys.argv[1])
EventProcessor(source=source, store={name}{make}(*sys.argv[2:]), handler=First).run()
"""

STORES: Final = {
    "sqlite": {"module": "sqlite", "name": "SqliteCheckpointStore", "make": ""},
    "blob": {
        "module": "blob",
        "name": "BlobCheckpointStore",
        "make": ".from_connection_string",
    },
}


def ms_until_output(code: str, *arguments: str) -> float:
    """Run a process until it writes; return the milliseconds from its start."""
    begun_s = time.monotonic()
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        return 1e3 * (time.monotonic() - begun_s)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 32])
    given = parser.parse_args()
    rounds = 1 if given.quick else given.rounds
    hubs = {f"start-{count}": count for count in given.partitions}
    rows: list[Row] = []
    with emulator_with(hubs) as emulator, Azurite() as azurite, TemporaryDirectory() as folder:
        for hub, count in hubs.items():
            fill(emulator.connection_strings[hub], count, 2 * count, equal_events(b"x"))
            for store, words in STORES.items():
                print_progress(f"{store}, {count} partitions")
                pairs = []
                for number in range(rounds):
                    name, where = f"{hub}-{number}", [str(Path(folder, f"{hub}-{number}.db"))]
                    if store == "blob":
                        where = [azurite.connection_string, name]
                        ContainerClient.from_connection_string(*where).create_container()
                    imports = IMPORTS.format(**words)
                    program = imports + PROGRAM.format(**words)
                    hub_address = emulator.connection_strings[hub]
                    pairs.append(
                        (
                            ms_until_output(imports + ENDED),
                            ms_until_output(program, hub_address, *where),
                        )
                    )
                imports_ms, first_event_ms = map(statistics.median, zip(*pairs, strict=True))
                rows.append(
                    {
                        "store": store,
                        "partitions": count,
                        "imports_ms": round(imports_ms),
                        "first_event_ms": round(first_event_ms),
                        "times_imports": round(
                            statistics.median(first / only for only, first in pairs), 2
                        ),
                    }
                )
    print_rows(rows, given.format)


if __name__ == "__main__":
    main()
