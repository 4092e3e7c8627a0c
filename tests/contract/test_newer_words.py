"""A word of a later version counts as the member of its enum that changes least, in every store."""

from enum import Enum
from typing import Any

import pytest

from eventproc.models import ConsumerGroup, Member, MemberStatus, OffsetFormat
from tests.contract.conftest import OpenStoreKind

GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="hub")


class Later(Enum):
    """What a later version may write."""

    WORD = "evacuating"


@pytest.mark.parametrize("store_kind", ["sqlite", "blob", "postgres", "tables"], indirect=True)
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("status", MemberStatus.ACTIVE),
        ("offset_format", OffsetFormat.AMQP),
    ],
)
async def test_a_newer_word_in_a_member_record_never_fails_a_listing(
    store_kind: OpenStoreKind, name: str, read: Enum
) -> None:
    """The member that wrote it counts as a live one, and keeps what it owns."""
    word: dict[str, Any] = {name: Later.WORD}
    async with store_kind() as kind, kind.make_store() as writer, kind.make_store() as reader:
        await writer.announce_member(GROUP, Member(owner_id="later", incarnation="1", **word))
        await writer.announce_member(GROUP, Member(owner_id="today", incarnation="2"))
        members = (await reader.list_members(GROUP)).members
        by_id = {member.owner_id: getattr(member, name) for member in members}

    assert by_id == {"later": read, "today": read}
