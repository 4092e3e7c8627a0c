"""What the blob store, and the Azure SDKs beside it, assume of single requests.

The contract of stores has the rest: conditions, races, long listings, the clock.
"""

from datetime import timedelta
from string import punctuation
from typing import Final

from eventproc._command.verify.bench import ContainerBench
from eventproc.errors import EventProcError
from eventproc.testing._clauses import require
from eventproc.testing._source_contract.bench import refused

METADATA_BYTES: Final = 7_000
"""Metadata of a blob may have 8 KiB."""


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
        signed = bench.signed(rights, lifetime)
        message = await refused(_use(signed), EventProcError, f"the rights {rights}")
        require(words in message, f"with the rights {rights}, {words!r} must be in: {message}")
        require("sig=" not in message, "an error must not have the signature")


async def _use(signed: ContainerBench) -> None:
    name = f"{signed.folder}right"
    async with signed.store:
        written = await signed.container.put(name, {}, None, etag=None)
        await signed.container.delete(name, etag=written.etag)
