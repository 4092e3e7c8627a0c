"""``eventproc store check`` says *ready* of a store that a processor can use."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import ContainerClient, ContainerSasPermissions, generate_container_sas

from eventproc._command import main
from eventproc._command.terminal.exits import BAD_INPUT, OK
from eventproc.testing._azurite import ACCOUNT_KEY, ACCOUNT_NAME


def checked(container, azurite, rights, monkeypatch, capsys):
    """Check a container with a token that has these rights; return exit code, output and error."""
    sas = generate_container_sas(
        ACCOUNT_NAME,
        container,
        account_key=ACCOUNT_KEY,
        permission=ContainerSasPermissions.from_string(rights),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    endpoint = dict(part.split("=", 1) for part in azurite.split(";") if part)["BlobEndpoint"]
    monkeypatch.setenv(
        "EVENTPROC_STORAGE_CONNECTION_STRING",
        f"BlobEndpoint={endpoint};SharedAccessSignature={sas}",
    )
    code = main(["store", "check", "--store", f"blob:{container}"])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("rights", "missing"), [("rl", "right to write blobs"), ("rwl", "right to delete")]
)
def test_a_container_that_a_processor_cannot_use_is_not_ready(
    storage, container, monkeypatch, capsys, rights, missing
):
    """Reading and listing are not enough; the message says which right is missing."""
    code, out, err = checked(container, storage, rights, monkeypatch, capsys)

    assert (code, out) == (BAD_INPUT, "")
    assert missing in err


def test_a_check_leaves_nothing_in_the_container(storage, container, monkeypatch, capsys):
    """It writes and deletes a record of its own."""
    code, out, _ = checked(container, storage, "rwdl", monkeypatch, capsys)
    with ContainerClient.from_connection_string(storage, container) as client:
        names = list(client.list_blob_names())

    assert code == OK
    assert ": ready, answers in" in out
    assert names == []


def test_a_check_leaves_nothing_in_a_file_and_needs_to_write_there(tmp_path, capsys):
    """A store of any kind is tried."""
    place = f"--store=sqlite:{tmp_path / 'g.db'}"
    codes = [main(["store", verb, place]) for verb in ("init", "check", "check")]
    shown = main(["status", place, "--resources", "eventproc-store-check", "--format", "json"])

    assert [*codes, shown] == [OK] * 4
    assert '"members": []' in capsys.readouterr().out
