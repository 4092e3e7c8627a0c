"""Writes the golden files anew: ``python -m tests.integration.positions.write_golden``.

Each client handles events 0 to 4 of partition 0 of a hub of two partitions; partition 1 is empty.
"""

import asyncio
from contextlib import suppress

from azure.storage.blob import ContainerClient

from eventproc.emulator import EventHubsEmulator
from eventproc.testing import Azurite
from tests.integration.positions.blobs import GOLDEN, as_golden, blobs_in
from tests.integration.positions.consumers import javascript_handles, publish, python_handles


async def main() -> None:
    """Write ``golden/python.json`` and ``golden/javascript.json``."""
    with EventHubsEmulator({"Orders": 2}) as emulator, Azurite() as azurite:
        hub, storage = emulator.connection_string_for("Orders"), azurite.connection_string
        await publish(hub, ["0"], 6)
        for name, handles in {"python": python_handles, "javascript": javascript_handles}.items():
            with ContainerClient.from_connection_string(storage, name) as container:
                container.create_container()
                await handles(hub, storage, name, 4, ["0"])
                # The Python client writes the namespace with its port, the other one without.
                namespace = f"127.0.0.1:{emulator.port}" if name == "python" else "127.0.0.1"
                (GOLDEN / f"{name}.json").write_text(as_golden(blobs_in(container), namespace))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
