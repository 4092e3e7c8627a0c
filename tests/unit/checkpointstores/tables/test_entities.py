"""Entities: every record comes back as it was written."""

from hypothesis import given
from hypothesis import strategies as st

from checkpointstores.tables._entities import (
    as_checkpoint,
    as_member,
    as_ownership,
    as_partial,
    checkpoint_values,
    member_values,
    ownership_values,
)
from checkpointstores.tables._table import Entity, Key
from eventproc.models import (
    IN_BATCH,
    IN_PART,
    NOT_BEGUN,
    CheckpointUpdate,
    Member,
    MemberStatus,
    OffsetFormat,
    OwnershipClaim,
    SequenceRange,
    alone,
)
from tests.unit.checkpointstores.tables.test_renewals import NOW

numbers = st.integers(0, 2**63 - 1)


def entity(values):
    """Return an entity with these properties."""
    return Entity(key=Key(partition="g", row="0"), etag="e", last_modified=NOW, values=values)


@given(st.none() | st.text(min_size=1), numbers)
def test_ownership_comes_back(owner_id, epoch):
    """Released or owned, with its fencing token."""
    claim = OwnershipClaim(partition_id="0", owner_id=owner_id, expected_etag=None, epoch=epoch)
    found = as_ownership(entity(ownership_values(claim, "w")))

    assert (found.partition_id, found.owner_id, found.epoch) == ("0", owner_id, epoch)
    assert (found.etag, found.last_modified) == ("e", NOW)


@given(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
def test_a_member_comes_back(capacity, ordinal):
    """With every field; ``None`` is not 0."""
    member = Member(
        owner_id="a",
        incarnation="1",
        status=MemberStatus.LEAVING,
        hands_over=False,
        weight=2.5,
        capacity=capacity,
        ordinal=ordinal,
        load="load",
        placement="Ring",
        deployment_id="d",
        offset_format=OffsetFormat.KAFKA,
        version="1.0",
        etag="e",
        last_modified=NOW,
    )

    assert as_member(entity(member_values(member, "w"))) == member


def test_words_of_a_later_version_are_read_as_defaults():
    """And properties that this version does not know are ignored."""
    values = member_values(Member(owner_id="a", incarnation="1"), "w")
    found = as_member(entity(values | {"status": "dancing", "mood": "good"}))

    assert found.status is MemberStatus.ACTIVE


@given(
    numbers,
    st.sampled_from([NOT_BEGUN, IN_BATCH, IN_PART, *map(alone, range(1, 9))]),
    st.sets(st.integers(1, 50)),
)
def test_a_checkpoint_comes_back(number, isolation, done):
    """With the ranges above its position."""
    completed = tuple(SequenceRange(2**60 + 2 * n, 2**60 + 2 * n) for n in sorted(done))
    update = CheckpointUpdate(
        partition_id="0",
        offset="o",
        sequence_number=min(number, 2**60),
        replaces=None,
        writer="w",
        completed=completed,
        isolation=isolation,
    )
    values = checkpoint_values(update, "name") | {"state_number": 7}
    found = as_checkpoint(entity(values), b"state")
    partial = as_partial(entity(values))

    assert (found.offset, found.sequence_number) == ("o", update.sequence_number)
    assert (found.completed, found.isolation) == (completed, isolation)
    assert (found.state, found.state_sequence_number, found.writer) == (b"state", 7, "w")
    assert partial.is_partial
    assert (partial.offset, partial.completed, partial.state) == ("o", (), None)
    assert as_checkpoint(entity(values), None).state_sequence_number is None
