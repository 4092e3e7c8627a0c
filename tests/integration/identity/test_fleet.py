"""A fleet of real processes with identities whose tokens expire while a process is killed."""

import signal
import threading
import time
from textwrap import dedent

import pytest
from azure.eventhub import EventData, EventHubProducerClient, TransportType

from eventproc._command.terminal.exits import OK
from eventproc.emulator import EventHubsEmulator, Right, TokenRules

from .test_command import FAST, HANDLER, hub_at

HUB_SCOPE = "https://eventhubs.azure.net/"
PARTITIONS = 4


class Output:
    """Collects what the processes print, in a thread for each."""

    def __init__(self):
        self.bodies: set[str] = set()
        self._changed = threading.Condition()

    def read(self, process):
        threading.Thread(target=self._read, args=[process.stdout], daemon=True).start()
        # Otherwise a full pipe would stop the process.
        threading.Thread(target=process.stderr.read, daemon=True).start()

    def _read(self, lines):
        for line in lines:
            with self._changed:
                self.bodies.add(line.strip())
                self._changed.notify_all()

    def wait_for(self, bodies):
        with self._changed:
            arrived = self._changed.wait_for(lambda: bodies <= self.bodies, timeout=150)
            assert arrived, sorted(bodies - self.bodies)


@pytest.mark.long
def test_nothing_is_lost_when_a_process_is_killed_and_tokens_expire(
    command, identity, account, box, tls
):
    """Hub and storage account take only tokens. Those last ten seconds, so that each is renewed
    several times before and after the kill."""
    (command.folder / "shop.py").write_text(dedent(HANDLER))
    identity.lifetime_s = 10.0
    rules = TokenRules(rights_by_identity={identity.identity: {Right.LISTEN}})
    output = Output()
    published: set[str] = set()
    with EventHubsEmulator(
        {"orders": PARTITIONS}, certificate=tls.certificate, key=tls.key, tokens=rules
    ) as hub:
        here = [*hub_at(hub.port), "--store", f"blob:{box}", "--storage-account", account.endpoint]
        producer = EventHubProducerClient.from_connection_string(
            hub.connection_string_for("orders"),
            custom_endpoint_address=f"sb://127.0.0.1:{hub.port}",
            transport_type=TransportType.Amqp,
            connection_verify=str(tls.ca),
        )

        def publish_until(is_over):
            """Publish to every partition in turn."""
            deadline = time.monotonic() + 150
            while not is_over():
                assert time.monotonic() < deadline, identity.asked
                body = f"event-{len(published)}"
                producer.send_event(EventData(body), partition_id=str(len(published) % PARTITIONS))
                published.add(body)
                time.sleep(0.05)

        def several_tokens():
            wanted = identity.asked.count(HUB_SCOPE) + 6
            return lambda: identity.asked.count(HUB_SCOPE) >= wanted

        with producer:
            fleet = [command.start("run", "shop:Count", *here, *FAST) for _ in range(3)]
            for process in fleet:
                output.read(process)
            publish_until(lambda: bool(output.bodies))
            publish_until(several_tokens())
            fleet[0].kill()
            publish_until(several_tokens())
            output.wait_for(published)
        for process in fleet[1:]:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(60) for process in fleet]

    assert codes == [-signal.SIGKILL, OK, OK]
    assert output.bodies == published
