"""Names and metadata of blobs: written strictly, read tolerantly."""

import hashlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpointstores.blob import _layout as layout
from checkpointstores.blob._layout import (
    Position,
    RecordKind,
    folder,
    member_blob,
    record_blob,
    record_in,
    record_metadata,
)
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup, Member, MemberStatus
from eventproc.models._checkpoint import NO_OFFSETS

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="NS.net", eventhub_name="Hub", name="$Default")
HOME = layout.home(GROUP)
texts = st.text(min_size=1).filter(lambda text: text.encode("utf-8", "ignore").decode() == text)
anything = st.dictionaries(st.text(), st.none() | st.text())
likely = st.dictionaries(
    st.sampled_from(["ownerid", "OwnerId", "offset", "sequencenumber", "SequenceNumber", "weight"]),
    st.none()
    | st.sampled_from(["", "no offset", "None", "7", "-1", "\u0667", "1e3", "nan", "%41"])
    | st.text(),
)


def is_header(value):
    """Whether an HTTP header transports the value unchanged."""
    return value.isascii() and (value.isprintable() or not value) and value == value.strip()


def test_a_name_of_dots_is_refused():
    """A client would take it for a path and write somewhere else."""
    with pytest.raises(ConfigurationError, match="name of dots"):
        layout.home(ConsumerGroup(fully_qualified_namespace="ns", eventhub_name=".."))


@pytest.mark.parametrize(
    ("name", "part"),
    [("a/b/0", "0"), ("a/b/", None), ("a/b", None), ("a/b/0/1", None), ("x/0", None)],
)
def test_only_blobs_directly_in_the_folder_are_records(name, part):
    """Not stubs, nested blobs, or blobs of other folders."""
    assert layout.part_below("a/b/", name) == part


@given(texts | st.none())
def test_any_owner_id_is_restored_from_metadata(owner_id):
    """Metadata are headers, which are ASCII."""
    metadata = layout.ownership_metadata(owner_id, 7)

    assert layout.owner_in(metadata) == (owner_id, 7)
    assert all(is_header(value) for value in metadata.values())


def test_an_ascii_owner_id_is_written_unchanged():
    """So logs of the Azure SDKs show the same name."""
    assert layout.ownership_metadata("host-1.example:42/#3", 0) == {
        "ownerid": "host-1.example:42/#3"
    }


def test_a_percent_sign_written_by_another_sdk_is_not_decoded():
    """Only values that this library would have written are."""
    assert layout.owner_in({"ownerid": "100%41 sure"}) == ("100%41 sure", 0)


@given(
    texts,
    texts,
    st.sampled_from(MemberStatus),
    st.booleans(),
    st.floats(0, allow_infinity=False),
    texts,
    st.text(),
    st.none() | st.integers(0),
    st.none() | st.integers(0),
    st.sampled_from(["Even", "Ring:bound=1.25", "flotte.für.mich"]),
)
def test_any_member_is_restored_from_metadata(
    owner_id,
    incarnation,
    status,
    hands_over,
    weight,
    deployment_id,
    version,
    capacity,
    ordinal,
    placement,
):
    """With all fields."""
    version = version.encode("utf-8", "ignore").decode()
    member = Member(
        owner_id=owner_id,
        incarnation=incarnation,
        status=status,
        hands_over=hands_over,
        weight=weight,
        capacity=capacity,
        ordinal=ordinal,
        placement=placement,
        deployment_id=deployment_id,
        version=version,
        etag="e",
        last_modified=NOW,
    )
    metadata = layout.member_metadata(member)

    assert layout.member_in(metadata, etag="e", last_modified=NOW) == member
    assert all(is_header(value) for value in metadata.values())


@given(st.lists(texts, min_size=2, max_size=2, unique=True))
def test_names_of_member_blobs_are_distinct_and_short(owner_ids):
    """However long the owner ids are."""
    names = [layout.member_blob(HOME, owner_id) for owner_id in owner_ids]
    folder = layout.folder(HOME, RecordKind.MEMBER)

    assert names[0] != names[1]
    assert all(layout.part_below(folder, name) for name in names)
    assert all(len(name) < len(folder) + 201 for name in names)


def is_offset(text: str) -> bool:
    """Return whether a checkpoint may have this offset with any number."""
    return text.lower() not in NO_OFFSETS and text != "-1"


@given(st.integers(0, 2**63 - 1), st.from_regex(r"[!-~]+", fullmatch=True).filter(is_offset), texts)
def test_any_position_is_restored_from_metadata(sequence_number, offset, writer):
    """Offsets are opaque and stay unchanged."""
    metadata = layout.checkpoint_metadata(offset, sequence_number, writer)

    assert layout.position_in(metadata) == Position(
        offset=offset, sequence_number=sequence_number, writer=writer
    )
    assert all(is_header(value) for value in metadata.values())


@given(anything | likely)
def test_any_metadata_can_be_read(metadata):
    """Invalid values are read as missing ones."""
    position = layout.position_in(metadata)
    layout.owner_in(metadata)
    layout.member_in(metadata, etag="e", last_modified=NOW)

    assert position.sequence_number is None or -1 <= position.sequence_number < 2**63
    assert position.offset is None or position.offset.lower() not in NO_OFFSETS


@given(st.binary() | st.text().map(str.encode))
def test_any_legacy_lease_can_be_read(body):
    """A blob that once was a lease may contain any bytes."""
    position = layout.legacy_position(body)

    assert position is None or position.is_usable


@pytest.mark.parametrize(
    ("body", "position"),
    [
        ('{"Offset":"70","SequenceNumber":7}', ("70", 7)),
        ('\ufeff{"offset":"70","sequencenumber":"7"}', ("70", 7)),
        ('{"Offset":"","SequenceNumber":7}', (None, 7)),
        ('{"Offset":"","SequenceNumber":0}', None),
        (
            '{"partition_id":"0","sequence_number":7,"event_processor_context":null,"offset":"70"}',
            ("70", 7),
        ),
        ('{"partition_id":"0","sequence_number":0,"offset":null}', None),
        (
            '{"partitionID":"1","checkpoint":{"offset":"70","sequenceNumber":7},"state":"available"}',
            ("70", 7),
        ),
        ('{"partitionID":"1","checkpoint":{"offset":"-1","sequenceNumber":0}}', ("-1", -1)),
        ('{"offset":"70","sequenceNumber":7,"checkpoint":[]}', ("70", 7)),
        ('{"Offset":"-1","SequenceNumber":0}', ("-1", -1)),
        ('{"Offset":"-1","SequenceNumber":5}', ("-1", -1)),
        ('{"Offset":"70"}', ("70", None)),
        ('{"Offset":"70","SequenceNumber":true}', ("70", None)),
        ('{"Offset":null,"SequenceNumber":7}', None),
        ('{"SequenceNumber":7}', None),
        ('{"Offset":"","SequenceNumber":"x"}', None),
        ('["Offset"]', None),
        ("", None),
    ],
)
def test_the_position_of_a_legacy_lease_is_read(body, position):
    """One without an offset was never checkpointed, whatever its sequence number is.

    One at the begin of the stream was checkpointed before the first event: number 0 means nothing.
    """
    found = layout.legacy_position(body.encode())

    assert (found and (found.offset, found.sequence_number)) == position


@pytest.mark.parametrize(
    ("number", "read"),
    [
        ("0", 0),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        ("-2", None),
        ("\u0667", None),
        ("\u00b2", None),
        ("1e3", None),
    ],
)
def test_a_sequence_number_is_a_decimal_of_64_bits(number, read):
    """Anything else counts as missing: no checkpoint can continue from it."""
    position = layout.position_in({"offset": "7", "sequencenumber": number})

    assert position == Position(offset="7", sequence_number=read, writer=None)


LOWERED = "/hub/$default/ownership/"
KEPT = "/hub/$Default/ownership/"


@pytest.mark.parametrize(
    ("namespace", "lower_case", "as_configured"),
    [
        ("ns.net", {"ns.net:", f"ns.net{KEPT}"}, {"ns.net:", f"ns.net{LOWERED}"}),
        (
            "ns.net:5671",
            {f"ns.net{LOWERED}", f"ns.net{KEPT}", f"ns.net:5671{KEPT}"},
            {f"ns.net{LOWERED}", f"ns.net{KEPT}", f"ns.net:5671{LOWERED}"},
        ),
        (
            "Ns",
            {"ns:", "Ns:", f"Ns{KEPT}"},
            {"ns:", "Ns:", f"ns{LOWERED}"},
        ),
        (
            "localhost:amqps",
            {"localhost:amqps:", f"localhost:amqps{KEPT}"},
            {"localhost:amqps:", f"localhost:amqps{LOWERED}"},
        ),
        ("8080", {"8080:", f"8080{KEPT}"}, {"8080:", f"8080{LOWERED}"}),
    ],
)
def test_other_spellings_have_another_port_or_case(namespace, lower_case, as_configured):
    """JavaScript's and Java's SDKs leave the port out, Go's and Rust's keep the case."""
    group = ConsumerGroup(fully_qualified_namespace=namespace, eventhub_name="hub")
    kept = layout.home(group, exact_names=True)

    assert layout.other_spelling_prefixes(group, layout.home(group)) == lower_case
    assert layout.other_spelling_prefixes(group, kept) == as_configured


@pytest.mark.parametrize(
    ("name", "record"),
    [
        (
            "ns.net:5671/hub/$default/ownership/0",
            ("ns.net:5671/hub/$default", "ownership", "0"),
        ),
        ("NS.net/Hub/$DEFAULT/checkpoint/7", ("NS.net/Hub/$DEFAULT", "checkpoint", "7")),
        ("ns.net:5671/hub/$default/ownership/", None),
        ("ns.net/hub/$default/member/0", None),
        ("ns.net/hub/$default/ownership/0/1", None),
        ("ns.net:5671/other/$default/ownership/0", None),
        ("ns.net:5671/hub/other/ownership/0", None),
        ("ns.net:5671/hub", None),
        ("", None),
    ],
)
def test_only_records_of_the_same_hub_and_group_show_another_spelling(name, record):
    """A namespace has other hubs, and a hub has other groups."""
    assert layout.record_of(name, GROUP) == record


@pytest.mark.parametrize(
    "metadata",
    [{"ownerid": "a"}, {"ownerid": "a", "incarnation": ""}, {"incarnation": "1"}, {}],
)
def test_a_member_record_without_its_names_is_no_member(metadata):
    """Nothing could be written for it, and nothing tells it from others."""
    assert layout.member_in(metadata, etag="e", last_modified=NOW) is None


@pytest.mark.parametrize("weight", ["heavy", "nan", "inf", "-3"])
def test_a_weight_that_no_member_can_have_is_read_as_the_default(weight):
    """A later version may store more in it; no plan could be made with it."""
    metadata = {"ownerid": "a", "incarnation": "1", "weight": weight}
    member = layout.member_in(metadata, etag="e", last_modified=NOW)

    assert member is not None
    assert member.weight == 1.0


def test_the_name_of_a_member_blob_is_cut_above_200_characters():
    """The limit of a name is 1,024 characters. Processors of all versions must cut alike."""
    below = layout.folder(HOME, RecordKind.MEMBER)
    digest = hashlib.sha256(b"x" * 201).hexdigest()

    assert layout.member_blob(HOME, "x" * 200) == below + "x" * 200
    assert layout.member_blob(HOME, "x" * 201) == f"{below}{'x' * 135}~{digest}"


@pytest.mark.parametrize("kind", [RecordKind.OWNERSHIP, RecordKind.CHECKPOINT])
@pytest.mark.parametrize("name", ["plan", "../ownership/0", "/", "ownership"])
def test_no_listing_of_an_azure_sdk_meets_a_group_record(kind, name):
    """An Azure SDK fails its whole listing at an unknown blob below its folders."""
    assert not record_blob(HOME, name).startswith(folder(HOME, kind))


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_member_has_the_blob_of_a_group_record(name, owner_id):
    """Both are below one folder, so that one listing has them."""
    blob = record_blob(HOME, name)

    assert blob.startswith(folder(HOME, RecordKind.MEMBER))
    assert blob != member_blob(HOME, owner_id)
    assert blob.count("/") == folder(HOME, RecordKind.MEMBER).count("/") + 1


@given(st.text(min_size=1).filter(lambda name: name.strip()))
def test_the_name_of_a_group_record_is_restored_from_metadata(name):
    """That of the blob may be cut, so it is not read from there."""
    assert record_in(record_metadata(name, "0123")) == name


def test_a_blob_of_another_program_is_no_group():
    """Its folders have the form of ours, and names that no group has."""
    odd = ["ns/hub/audit /checkpoint/0", "ns/hub/a\\b/checkpoint/0", "ns/h\x07/g/ownership/0"]
    found = layout.groups_in([*odd, "ns/hub/group/checkpoint/0"])

    assert [group.name for group in found] == ["group"]
