"""What the blob store assumes of single requests; the store's contract has what follows from it."""

from datetime import UTC, datetime, timedelta
from functools import partial
from string import punctuation
from typing import Final

from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import ContainerSasPermissions, generate_container_sas

from eventproc._base.azure_storage.answers import ConditionFailedError
from eventproc._command.verify.bench import Container, ContainerBench
from eventproc.errors import EventProcError
from eventproc.testing._clauses import SkippedError, require
from eventproc.testing._source_contract.bench import refused

METADATA_BYTES: Final = 7_000
"""Metadata of a blob may have 8 KiB."""


async def a_blob_is_created_only_if_there_is_none(bench: ContainerBench) -> None:
    """A write that requires that there is no blob is refused if there is one, and changes nothing.

    Relied on by: checkpointstores/blob/_azure_container.py
    """
    name = bench.folder + "created"
    await bench.container.put(name, {"by": "first"}, None, etag=None)
    again = bench.container.put(name, {"by": "second"}, None, etag=None)
    await refused(again, ConditionFailedError, "creating a blob that exists")
    found = await bench.container.read(name)

    require(found and found.metadata == {"by": "first"}, f"the first write must stay: {found}")


async def a_write_needs_the_newest_version(bench: ContainerBench) -> None:
    """Every write gives a new ETag; a write or a deletion on an older ETag changes nothing.

    Relied on by: checkpointstores/_requests.py, docs/guarantees.md
    """
    name, container = bench.folder + "versions", bench.container
    etags = [(await container.put(name, {"n": "0"}, None, etag=None)).etag]
    for _ in range(20):  # many writes within a second, each of the same content
        etags.append((await container.put(name, {"n": "0"}, None, etag=etags[-1])).etag)
    await refused(
        container.put(name, {"n": "1"}, None, etag=etags[-2]),
        ConditionFailedError,
        "a write on an older ETag",
    )
    await refused(
        container.delete(name, etag=etags[-2]), ConditionFailedError, "a deletion on an older ETag"
    )
    found = await container.read(name)

    require(len(set(etags)) == len(etags), f"each write must give a new ETag: {etags}")
    require(found and found.metadata == {"n": "0"}, f"the blob must stay as it was: {found}")
    require(found and found.etag == etags[-1], "a blob must be read with the ETag of its write")


async def a_blob_that_was_deleted_is_not_written(bench: ContainerBench) -> None:
    """A write or a deletion on the ETag of a blob that is gone is refused, and creates none.

    Relied on by: checkpointstores/blob/_requests.py
    """
    name, container = bench.folder + "deleted", bench.container
    etag = (await container.put(name, {}, None, etag=None)).etag
    await container.delete(name, etag=etag)
    for attempt in (
        partial(container.put, name, {}, None),
        partial(container.put, name, {}, b"body"),
        partial(container.delete, name),
    ):
        what = "a request on the ETag of a deleted blob"
        await refused(attempt(etag=etag), ConditionFailedError, what)

    require(await container.read(name) is None, "a blob that was deleted must not come back")


async def a_listing_has_a_write_at_once(bench: ContainerBench) -> None:
    """A listing that begins after a write was answered has it, with its ETag and its time.

    Relied on by: eventproc/_group/balancer.py, docs/guarantees.md
    """
    folder, container = bench.folder + "listed/", bench.container
    await container.put(bench.folder + "listed-elsewhere", {}, None, etag=None)
    for number in range(20):
        name = f"{folder}{number}"
        written = await container.put(name, {"number": str(number)}, None, etag=None)
        listing = await container.list(folder)
        found = {item.name: item for item in listing.items}
        wanted = {f"{folder}{n}" for n in range(number + 1)}

        require(set(found) == wanted, f"a listing must have {sorted(wanted)}, not {sorted(found)}")
        require(
            (found[name].etag, found[name].last_modified) == (written.etag, written.last_modified),
            "a blob must be listed with the ETag and the time of its write",
        )
        require(found[name].metadata == {"number": str(number)}, "and with its metadata")
        late = listing.as_of - written.last_modified
        require(
            timedelta(seconds=-1) <= late < timedelta(minutes=1),
            f"the answer of a listing has the date {listing.as_of}, and the record before it "
            f"{written.last_modified}: they must be of one clock",
        )


async def metadata_comes_back_as_it_was_written(bench: ContainerBench) -> None:
    """Keys keep their lower case, values all their characters; a value may be empty, or long.

    Relied on by: checkpointstores/blob/_layout.py
    """
    name, container = bench.folder + "metadata", bench.container
    written = {
        "ownerid": "",
        "sequencenumber": str(2**63 - 1),
        "marks": "".join(sorted(punctuation)),
        "letters": "aZ" * (METADATA_BYTES // 2),
    }
    await container.put(name, written, None, etag=None)
    read = await container.read(name)
    (listed,) = (await container.list(name)).items
    for found, how in ((read, "read"), (listed, "listed")):
        values = {key: value or "" for key, value in (found.metadata if found else {}).items()}
        require(
            values == written,
            f"metadata must be {how} as it was written; {values.keys() ^ written.keys()} are in "
            f"one of them, and {[k for k in values if values[k] != written.get(k)]} differ",
        )


async def new_metadata_replaces_the_old_and_keeps_the_body(bench: ContainerBench) -> None:
    """A write of metadata alone erases all former metadata, and keeps the body.

    Relied on by: checkpointstores/blob/_checkpoint.py
    """
    name, container = bench.folder + "body", bench.container
    written = await container.put(name, {"old": "1", "both": "1"}, b"body", etag=None)
    await container.put(name, {"both": "2"}, None, etag=written.etag)
    found = await container.read(name, body_bytes_max=100)

    require(
        found and (found.metadata, found.body) == ({"both": "2"}, b"body"),
        f"metadata must be replaced and the body kept: {found}",
    )


async def names_of_blobs_are_exact(bench: ContainerBench) -> None:
    """Names may have any characters that we use, and differ if only their case does.

    Relied on by: checkpointstores/blob/_layout.py
    """
    folder, container = bench.folder + "names/", bench.container
    names = {folder + name for name in ("a", "A", "$default", "a%2Fb", "a b+c", "é", "!records/x")}
    for name in names:
        await container.put(name, {}, None, etag=None)
    found = {item.name for item in (await container.list(folder)).items}

    require(found == names, f"the names {sorted(names)} were listed as {sorted(found)}")


async def a_missing_right_is_told_from_a_wrong_key(bench: ContainerBench) -> None:
    """A signature without a right, and an expired one, are refused by errors that say so.

    Relied on by: eventproc/_base/azure_storage/answers.py
    """
    soon, over = timedelta(hours=1), timedelta(minutes=-5)
    for rights, lifetime, words in (
        ("wdl", soon, "lacks the right to read blobs"),
        ("rwd", soon, "lacks the right to list blobs"),
        ("rdl", soon, "lacks the right to write blobs"),
        ("rwl", soon, "lacks the right to delete blobs"),
        ("rwdl", over, "the SAS token expired at 20"),
    ):
        signature = _signature(bench, rights, lifetime)
        signed = bench.container.opened_by(signature)
        message = await refused(_use(signed, bench), EventProcError, f"the rights {rights}")
        require(words in message, f"with the rights {rights} the error must say that it {words}")
        require(signature[-20:] not in message, "the error must not have the signature")


async def _use(signed: Container, bench: ContainerBench) -> None:
    name = bench.folder + "right"
    try:
        await signed.open()
        written = await signed.put(name, {}, b"", etag=None)
        await signed.delete(name, etag=written.etag)
    finally:
        await signed.close()
        if found := await bench.container.read(name):
            await bench.container.delete(name, etag=found.etag)


def _signature(bench: ContainerBench, rights: str, lifetime: timedelta) -> str:
    key = bench.container.credential
    if not isinstance(key, AzureNamedKeyCredential):
        raise SkippedError("it needs a connection string with an account key, to sign tokens")
    account, secret = key.named_key
    return generate_container_sas(
        account,
        bench.container.name,
        account_key=secret,
        permission=ContainerSasPermissions.from_string(rights),
        expiry=datetime.now(UTC) + lifetime,
    )
