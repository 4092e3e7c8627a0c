"""Credentials that lack a right, expire or are malformed, and damaged records, on real storage."""

import json
import signal
from datetime import UTC, datetime, timedelta
from textwrap import dedent

import pytest
from azure.eventhub import EventData, EventHubProducerClient
from azure.storage.blob import ContainerClient, ContainerSasPermissions, generate_container_sas

from eventproc._command.terminal.exits import BAD_INPUT, FAILED, OK, UNREACHABLE
from tests.servers.ports import free_port

HANDLER = """
    from eventproc import PartitionHandler

    class Count(PartitionHandler):
        async def process_events(self, context, events):
            context.state = str(int(context.state or 0) + len(events)).encode()
            print(context.partition_id, events[-1].sequence_number, flush=True)

        async def process_error(self, context, error):
            print(context.partition_id, type(error).__name__, flush=True)
"""
FAST = ["--interval", "1s", "--expiration", "6s", "--checkpoint-events", "1"]
PARTITIONS = "0123"


class Shop:
    """A hub with two events in each partition, a container, and the processors that use them."""

    def __init__(self, command, orders, storage, container):
        self.command, self.orders = command, orders
        self.storage, self.container = storage, container
        with ContainerClient.from_connection_string(storage, container) as client:
            self.endpoint = f"{client.scheme}://{client.primary_hostname}"
            self.account, self.key = client.credential.account_name, client.credential.account_key
        self.here = ["--eventhub", "orders", "--store", f"blob:{container}"]

    def publish(self):
        """Publish one more event to each partition."""
        text = self.orders.connection_string_for("orders")
        with EventHubProducerClient.from_connection_string(text) as producer:
            for partition_id in PARTITIONS:
                producer.send_batch([EventData("x")], partition_id=partition_id)

    def env(self, storage=None):
        """Return the environment of a command that uses this storage; the real one by default."""
        return {
            "EVENTPROC_CONNECTION_STRING": self.orders.connection_string,
            "EVENTPROC_STORAGE_CONNECTION_STRING": storage or self.storage,
        }

    def sas(self, rights, lifetime=timedelta(hours=1)):
        """Return a connection string with a SAS for the container that has these rights: r, w, d
        and l."""
        token = generate_container_sas(
            self.account,
            self.container,
            account_key=self.key,
            permission=ContainerSasPermissions.from_string(rights),
            expiry=datetime.now(UTC) + lifetime,
        )
        return f"BlobEndpoint={self.endpoint};SharedAccessSignature={token}"

    def start(self, storage, *options):
        """Start a processor with that credential."""
        return self.command.start(
            "run", "shop:Count", *self.here, *FAST, *options, **self.env(storage)
        )

    def run(self, storage, *options):
        """Run a processor that fails; return exit code and standard error."""
        code, out, err = self.command.run(
            "run", "shop:Count", *self.here, *FAST, *options, **self.env(storage)
        )

        assert out == ""
        return code, err


def read_until(process, wanted):
    """Read what handlers print until all these lines have come."""
    missing = set(wanted)
    while missing:
        line = process.stdout.readline()
        assert line, f"it ended before it printed {missing}: {process.stderr.read()}"
        missing.discard(line.strip())


def events_of(err):
    """Return the log events, in order."""
    return [json.loads(line)["event"] for line in err.splitlines() if line.startswith("{")]


@pytest.fixture(name="shop")
def _shop(command, orders, tmp_path, storage, container):
    """Return a shop with events, and a handler in the folder."""
    (tmp_path / "shop.py").write_text(dedent(HANDLER))
    made = Shop(command, orders, storage, container)
    made.publish()
    return made


@pytest.mark.parametrize(
    ("rights", "missing"), [("rl", "write blobs"), ("wl", "read blobs"), ("rw", "list blobs")]
)
def test_run_with_a_sas_that_lacks_a_right_names_the_right(shop, rights, missing):
    """The message has one line, and the exit code means that a restart is of no use."""
    code, err = shop.run(shop.sas(rights))

    assert code == BAD_INPUT
    assert events_of(err) == ["processor_starting"]
    assert err.count("\n") == 2
    assert f"lacks the right to {missing} (403 AuthorizationPermissionMismatch)" in err


def test_run_with_a_malformed_key_says_that_it_cannot_sign(shop):
    """No request is sent, so the message has no status code."""
    code, err = shop.run(shop.storage.replace(shop.key, "c2Vjc"))

    assert code == BAD_INPUT
    assert "no request can be signed with the credential" in err
    assert events_of(err) == ["processor_starting"]
    assert err.count("\n") == 2


def test_run_with_an_unreachable_store_names_its_address(shop):
    """The message has the system's error, and the exit code means that a restart may help."""
    port = free_port()
    elsewhere = f"BlobEndpoint=http://127.0.0.1:{port}/shop;AccountName=shop;AccountKey=c2VjcmV0"
    code, err = shop.run(elsewhere)

    assert code == UNREACHABLE
    assert f"container 127.0.0.1:{port}/shop/{shop.container} does not answer (ClientConn" in err
    assert "check the storage account's address" in err


def test_a_stop_without_the_delete_right_succeeds(shop):
    """The member record stays, which is logged once, and not as an outage of the store."""
    process = shop.start(shop.sas("rwl"))
    read_until(process, [f"{p} 0" for p in PARTITIONS])
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)

    assert process.returncode == OK
    assert events_of(err).count("store_refused") == 1
    assert "lacks the right to delete blobs" in err
    assert "store_requests_failed" not in events_of(err)


def test_a_sas_that_expires_during_a_run_makes_the_exit_code_failed(shop):
    """The expiry is logged once, and the last line names the partitions without a checkpoint."""
    process = shop.start(
        shop.sas("rwdl", timedelta(seconds=25)), "--shutdown-timeout", "4s", "--expiration", "12s"
    )
    read_until(process, [f"{p} 0" for p in PARTITIONS])
    lines = []
    for line in process.stderr:  # Renewals meet the refusal first.
        lines.append(line)
        if "store_refused" in line:
            break
    shop.publish()
    read_until(process, [f"{p} 1" for p in PARTITIONS])
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=30)
    err = "".join(lines) + rest
    events = events_of(err)

    assert process.returncode == FAILED
    assert "could not be stored for partitions 0, 1, 2, 3" in err.splitlines()[-1]
    assert events.count("checkpoint_abandoned") == 4
    assert events.count("store_refused") == 1
    assert "the SAS token expired at" in err
    assert "never retrieved" not in err
    assert "Traceback" not in err
    assert "StoreCorruptError" not in err


def test_a_damaged_state_is_reported_and_repaired_without_a_restart(shop):
    """The other partitions are served meanwhile; ``checkpoints reset`` lets the partition start."""
    first = shop.start(None)
    read_until(first, [f"{p} 0" for p in PARTITIONS])
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=30)
    truncate_state(shop, "2")
    shop.publish()
    process = shop.start(None)
    read_until(process, ["0 1", "1 1", "3 1", "2 StoreCorruptError"])
    status = [*shop.here, *FAST[2:4]]
    code, table, _ = shop.command.run("status", *status, **shop.env())
    _, report, _ = shop.command.run("status", *status, "--format", "json", **shop.env())
    shop.command.run(
        "checkpoints", "reset", "--to", "earliest", "--partition", "2", "--yes", *status,
        **shop.env(),
    )  # fmt: skip
    read_until(process, ["2 1"])
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    rows = json.loads(report)["partitions"]
    errors = {row["partition_id"]: row["checkpoint_error"] for row in rows}
    events = events_of(err)

    assert code == OK
    assert "partition 2 is not served: the state in " in table
    assert {p for p, error in errors.items() if error} == {"2"}
    assert "eventproc checkpoints reset" in errors["2"]
    assert events.count("adoption_failed") == 1
    assert events.count("partition_started") == 4
    assert process.returncode == OK


def truncate_state(shop, partition_id):
    """Shorten the body of a checkpoint blob, and keep its metadata."""
    with ContainerClient.from_connection_string(shop.storage, shop.container) as client:
        for blob in client.list_blobs(include=["metadata"]):
            if blob.name.endswith(f"/checkpoint/{partition_id}"):
                body = client.download_blob(blob.name).readall()
                client.upload_blob(blob.name, body[:-1], overwrite=True, metadata=blob.metadata)
                return
    raise AssertionError("there is such a checkpoint")
