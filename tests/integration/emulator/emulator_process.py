"""An emulator in a process of its own: ``emulator_process.py DIRECTORY PORT``.

Prints its port and its health port when it is ready.
"""

import sys
from pathlib import Path

from eventproc.emulator import EmulatorConfiguration, hubs_of, run

directory, port = sys.argv[1:]
run(
    EmulatorConfiguration(
        hubs=hubs_of({"orders": 2}), port=int(port), health_port=0, directory=Path(directory)
    ),
    on_ready=lambda server: print(server.port, server.health_port, flush=True),
)
