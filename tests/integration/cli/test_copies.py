"""Checkpoints that move from store to store, by ``export`` and ``import``, stay the same."""

import base64
import itertools
import json
import uuid

import pytest
from azure.data.tables import TableServiceClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventproc._command import main

HUB = ("--namespace", "host", "--eventhub", "orders", "--without-hub")


@st.composite
def checkpoints(draw):
    """Draw what the file says of one partition, but its id."""
    number = draw(st.integers(0, 2**40))
    steps = draw(st.lists(st.integers(2, 1000), max_size=6))
    ends = list(itertools.accumulate(steps, initial=number))[1:]
    state = draw(st.none() | st.binary(min_size=1, max_size=2000))
    return {
        "offset": str(draw(st.integers(0, 2**60))),
        "sequence_number": number,
        "state": None if state is None else base64.b64encode(state).decode(),
        "state_sequence_number": None if state is None else number,
        "completed": [ends[at : at + 2] for at in range(0, len(ends) - 1, 2)],
    }


@pytest.fixture(name="stores")
def _stores(tmp_path, monkeypatch, storage, container, postgres, tables):
    """Return ``--store`` of five stores, with the connection string of its storage account."""
    monkeypatch.setenv("ORDERS_DSN", postgres.dsn)
    name = uuid.uuid4().hex
    with TableServiceClient.from_connection_string(tables.connection_string) as client:
        client.create_table(f"t{name}")
    postgresql = f"postgres:ORDERS_DSN?schema=s{name}"
    assert main(["store", "init", "--store", postgresql]) == 0
    return {
        f"sqlite:{tmp_path}/first.db": "",
        postgresql: "",
        f"tables:t{name}": tables.connection_string,
        f"blob:{container}": storage,
        f"sqlite:{tmp_path}/last.db": "",
    }


@pytest.mark.long
@pytest.mark.integration
def test_checkpoints_are_the_same_after_each_copy(stores, tmp_path, monkeypatch, capsys):
    """From SQLite to PostgreSQL, a table, blobs and another file: positions, states, ranges."""

    def run(*arguments, secret):
        if secret:
            monkeypatch.setenv("EVENTPROC_STORAGE_CONNECTION_STRING", secret)
        else:
            monkeypatch.delenv("EVENTPROC_STORAGE_CONNECTION_STRING", raising=False)
        assert main(["checkpoints", *arguments, *HUB]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.integers(0, 99).map(str), checkpoints(), min_size=1, max_size=4))
    def check(drawn):
        group = ("--consumer-group", uuid.uuid4().hex)
        file = tmp_path / "copy.json"
        head = {"format": "eventproc-checkpoints", "version": 1, "namespace": "host"}
        head |= {"eventhub": "orders", "consumer_group": "x", "exported_at": "2026-01-01T00:00:00Z"}
        listed = [{"partition_id": partition_id, **found} for partition_id, found in drawn.items()]
        file.write_text(json.dumps(head | {"checkpoints": listed}))
        for store, secret in stores.items():
            where = ("--store", store, *group)
            run("import", str(file), *where, "--yes", secret=secret)
            run("export", str(file), *where, "--overwrite", secret=secret)
            copied = json.loads(file.read_text())["checkpoints"]
            found = {c.pop("partition_id"): c for c in copied if c.pop("last_modified")}

            assert found == drawn, store

    check()
