"""The view of a group: ages by the store's clock, lag, members."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from eventproc._command.group.fields import as_json
from eventproc._command.group.readings import Readings
from eventproc._command.group.tables import absence_lines, as_tables
from eventproc._command.group.view import view_of
from eventproc._core.placement.published_plan import PublishedPlan
from eventproc.models import (
    Checkpoint,
    ConsumerGroup,
    Member,
    MembershipSnapshot,
    MemberStatus,
    OwnershipSnapshot,
    PartitionOwnership,
    PartitionProperties,
)

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
GROUP = ConsumerGroup(fully_qualified_namespace="ns", eventhub_name="orders")


def ago(seconds):
    """Return the time *seconds* before ``NOW``."""
    return NOW - timedelta(seconds=seconds)


def owned(partition_id, owner_id, age_s):
    """Return an ownership record."""
    return PartitionOwnership(
        partition_id=partition_id, owner_id=owner_id, etag="e", last_modified=ago(age_s)
    )


def end(partition_id, last, first=0):
    """Return the properties of a partition that ends here."""
    return PartitionProperties(
        partition_id=partition_id,
        beginning_sequence_number=first,
        last_enqueued_sequence_number=last,
        last_enqueued_offset="o",
        last_enqueued_time=None,
        is_empty=last < first,
    )


def view(ownerships=(), members=(), checkpoints=(), ends=(), damage=None, **published):
    """Return the view of such records, as the command does."""
    readings = Readings(
        owned=OwnershipSnapshot(ownerships=tuple(ownerships), as_of=NOW),
        present=MembershipSnapshot(members=tuple(members), as_of=NOW),
        checkpoints=[
            Checkpoint(
                partition_id=p, offset="o", sequence_number=n, etag="e", last_modified=ago(3)
            )
            for p, n in checkpoints
        ],
        ends={found.partition_id: found for found in ends},
        damage=damage or {},
        **published,
    )
    return view_of(GROUP, readings, expiration=timedelta(seconds=60))


def test_partitions_are_sorted_by_number():
    """2 comes before 10, and an id that is not a number comes last."""
    found = view([owned(p, "a", 1) for p in ("10", "x", "2")])

    assert [row.partition_id for row in found.partitions] == ["2", "10", "x"]


def test_an_ownership_record_that_was_not_renewed_is_expired():
    """A released partition has no owner, however old its record is."""
    found = view([owned("0", "a", 61), owned("1", "a", 59), owned("2", None, 999)])

    assert [row.is_expired for row in found.partitions] == [True, False, False]


def test_lag_counts_events_behind_the_checkpoint():
    """All events without a checkpoint, 0 in an empty partition, unknown without a hub."""
    found = view(
        [owned("9", "a", 1)],
        checkpoints=[("0", 7)],
        ends=[end("0", 9), end("1", 9, first=5), end("2", -1)],
    )

    assert [row.lag for row in found.partitions] == [2, 5, 0, None]
    assert found.lag == 7


def test_lag_does_not_count_events_that_the_hub_has_deleted():
    """They cannot be handled any more."""
    (row,) = view(checkpoints=[("0", 3)], ends=[end("0", 19, first=10)]).partitions

    assert row.lag == 10


def test_members_are_live_owners_and_processors_with_a_member_record():
    """An owner without one is foreign. Expired records do not count."""
    members = [
        Member(owner_id="new", incarnation="i", last_modified=ago(1), status=MemberStatus.LEAVING),
        Member(owner_id="gone", incarnation="i", last_modified=ago(99)),
    ]
    found = view([owned("0", "azure", 1), owned("1", "dead", 99)], members)

    assert [(m.owner_id, m.partition_count, m.has_record) for m in found.members] == [
        ("azure", 1, False),
        ("new", 0, True),
    ]


def test_json_has_ages_as_numbers_of_seconds():
    """So a program need not parse durations."""
    output = as_json(view([owned("0", "a", 1.5)], checkpoints=[("0", 7)], ends=[end("0", 9)]))

    assert output["lag"] == 2
    assert output["partitions"] == [
        {
            "partition_id": "0",
            "owner_id": "a",
            "is_expired": False,
            "record_age_s": 1.5,
            "sequence_number": 7,
            "checkpoint_age_s": 3.0,
            "checkpoint_error": None,
            "lag": 2,
            "paused_since": None,
            "pause_reason": None,
        }
    ]


def printed(found):
    """Return the output on a page of 100 columns."""
    console = Console(width=100)
    with console.capture() as captured:
        console.print(as_tables(found))
    return captured.get()


def test_the_tables_show_owners_and_remarks():
    """In words: expired, unowned, leaving, without a member record."""
    text = printed(
        view(
            [owned("0", "old", 75), owned("1", None, 1), owned("2", "azure", 1)],
            [
                Member(
                    owner_id="b", incarnation="i", last_modified=ago(1), status=MemberStatus.LEAVING
                )
            ],
        )
    )

    for word in ("old (expired)", "unowned", "75 s ago", "leaving", "no member record"):
        assert word in text


def member(owner_id, **facts):
    """Return a fresh member record."""
    return Member(owner_id=owner_id, incarnation="i", last_modified=ago(1), **facts)


def test_the_placement_of_the_group_is_the_one_that_most_members_with_a_share_have():
    """A member that leaves does not count, nor does one that is dead."""
    names = ["Ring", "Even", "Even"]
    members = [member(f"host-{n}", placement=name) for n, name in enumerate(names)]
    others = [
        member("leaving", placement="Ring", status=MemberStatus.LEAVING),
        Member(owner_id="dead", incarnation="i", last_modified=ago(99), placement="Ring"),
    ]

    assert view(members=members).placement == "Even"
    assert view(members=[*members, *others]).placement == "Even"
    assert view(members=[*members, member("new", placement="Ring")]).placement == "Even"
    assert view(members=[*members[:2], member("new", placement="Ring")]).placement == "Ring"


def test_a_standby_without_a_vacancy_does_not_count_for_the_placement():
    """The processors do not count it either: the old ones keep theirs until they are fewer."""
    old = member("old", placement="Even", deployment_id="1")
    new = [
        member(f"new-{n}", placement="Weighted", deployment_id="2", status=MemberStatus.STANDBY)
        for n in range(2)
    ]

    assert view([owned("0", "old", 1)], [old, *new]).placement == "Even"
    assert view([owned("0", None, 1)], [old, *new]).placement == "Weighted"


def test_with_a_foreign_member_the_placement_of_the_group_is_even():
    """It is the only one that a processor of an Azure SDK can share."""
    members = [member("host-1", placement="Ring")]

    assert view([owned("0", "azure", 1)], members).placement == "Even"
    assert view([owned("0", "azure", 99)], members).placement == "Ring"


def test_a_group_without_members_of_ours_has_no_placement():
    """Nothing is known of the rule that foreign members follow."""
    found = view([owned("0", "azure", 1)])

    assert found.placement is None
    assert "placement" not in printed(found)


def test_the_tables_show_what_members_have_for_their_placement():
    """Beside the group's placement; a foreign member has none."""
    found = view(
        [owned("0", "azure", 1)],
        [
            member("host-1", placement="Weighted", weight=2.5, ordinal=1),
            member("host-2", capacity=4, ordinal=2),
        ],
    )
    text = printed(found)
    lines = [line.split() for line in text.splitlines()]
    cells = {line[0]: line[1:6] for line in lines[-6:] if line}

    assert "placement Even" in text
    assert cells["member"] == ["partitions", "placement", "ordinal", "weight", "capacity"]
    assert cells["azure"][:2] == ["1", "no"]
    assert cells["host-1"] == ["0", "Weighted", "1", "2.5"]
    assert cells["host-2"] == ["0", "Even", "2", "1", "4"]


def test_a_group_without_members_has_no_empty_table():
    """A sentence takes its place, which says that nothing runs."""
    text = printed(view([owned("0", None, 99)]))

    assert "unowned" in text
    assert "remarks" not in text
    assert text.splitlines()[-1].startswith("No members: no process of this group")


def test_the_tables_have_no_column_that_says_nothing():
    """A number at the end of an owner id means nothing to ``Even``."""
    text = printed(view(members=[member("host-1", ordinal=1), member("host-2", ordinal=2)]))

    assert "placement Even" in text
    assert text.splitlines()[-3].split() == ["member", "partitions", "remarks"]


def test_json_has_the_placements_of_group_and_members():
    """With everything that a placement regards."""
    output: Any = as_json(view(members=[member("a", placement="Weighted", weight=2.0, capacity=3)]))
    (row,) = output["members"]

    assert output["placement"] == "Weighted"
    assert [row[name] for name in ("placement", "weight", "capacity", "ordinal")] == [
        "Weighted",
        2.0,
        3,
        None,
    ]


def published(leader, incarnation="i", number=7):
    """Return a published plan."""
    return PublishedPlan(
        number=number,
        leader=leader,
        incarnation=incarnation,
        placement="Published:Ring",
        members=("a", "b"),
        owner_by_resource={"0": "a"},
    )


@pytest.mark.parametrize(
    ("published", "leader"),
    [
        (None, "a"),
        (published("b"), "b"),
        (published("b", "former"), "a"),
        (published("gone"), "a"),
    ],
)
def test_the_leader_is_the_one_that_publishes_next(published, leader):
    """As the members find it: the process that the plan names, or else the first in order."""
    members = [member(name, placement="Published:Ring") for name in ("b", "a")]
    found = view(members=members, published=published)
    number = None if published is None else 7

    assert as_json(found)["published_plan"] == {"leader": leader, "number": number, "error": None}
    assert (
        f"{'no published plan yet' if published is None else 'published plan 7'}, leader {leader}"
        in printed(found)
    )


def test_a_member_without_the_placement_is_no_leader():
    """It follows; a member that leaves does not lead either."""
    members = [
        member("a", placement="Even"),
        member("b", placement="Published:Ring", status=MemberStatus.LEAVING),
        *(member(name, placement="Published:Ring") for name in ("d", "c")),
    ]

    assert view(members=members).published.leader == "c"


def test_a_group_without_a_published_plan_shows_no_plan():
    """Although one may be stored from before."""
    found = view(members=[member("a")], published=published("a"))

    assert found.published is None
    assert "published_plan" not in {*as_json(found)}
    assert "leader" not in printed(found)


def test_a_plan_that_cannot_be_read_is_shown_with_the_remedy():
    """Of a later version, for example."""
    members = [member("a", placement="Published:Ring")]
    found = view(members=members, plan_error="written by a later eventproc: use that")

    assert "the published plan cannot be read: written by a later eventproc" in printed(found)
    assert "no published plan yet" not in printed(found)


def test_for_an_empty_group_a_sentence_is_printed():
    """Two empty tables would look like an error. A mistyped name is the likely cause."""
    text = " ".join(printed(view()).split())

    assert "no ownership records, checkpoints or members" in text
    assert "check --eventhub, --consumer-group, --namespace and --store" in text


def test_a_damaged_checkpoint_is_shown_with_the_remedy():
    """In the table and below it, and in JSON beside the position."""
    printed = view(
        [owned("0", "host-1", 3), owned("1", "host-1", 3)],
        checkpoints=[("0", 5), ("1", 6)],
        damage={"1": "the state in hub/checkpoint/1 is damaged: restore the blob"},
    )
    console = Console(width=120, record=True, file=None)
    with console.capture() as captured:
        console.print(as_tables(printed))
    rows: Any = as_json(printed)["partitions"]
    errors = [row["checkpoint_error"] for row in rows]

    assert errors == [None, "the state in hub/checkpoint/1 is damaged: restore the blob"]
    assert "partition 1 is not served: the state in hub/checkpoint/1 is damaged" in captured.get()
    assert captured.get().count("damaged") == 1
    assert captured.get().count("not served") == 2


def test_a_group_without_records_may_be_mistyped():
    """The hub has partitions, so the table looks like a group whose processes are down."""
    unknown = view(ends=[end("0", 4)])
    with_checkpoint = view(checkpoints=[("0", 3)], ends=[end("0", 4)])

    console = Console(width=200)
    with console.capture() as captured:
        console.print(as_tables(unknown))

    (line,) = absence_lines(unknown)
    assert "check --eventhub, --consumer-group" in line
    assert line in captured.get()
    assert absence_lines(with_checkpoint) == absence_lines(view()) == []


@pytest.mark.parametrize(
    ("position", "last", "created", "shown"),
    [
        (5, 4, None, "does not fit the hub, where the partition's last event is 4. Possible"),
        (5, 5, None, None),
        (5, 9, ago(4), None),
        (5, 9, ago(2), "is older than the hub: this was deleted and created again"),
        (-1, 9, ago(2), None),
        (-1, -1, None, None),
    ],
    ids=["beyond the end", "at the end", "younger", "older", "before the first", "empty"],
)
def test_a_checkpoint_of_a_hub_that_was_created_again_is_shown(position, last, created, shown):
    """It is older than the hub (checkpoints here are 3 s old), or lies beyond the end: that may
    have other causes, which the message names."""
    found = view(checkpoints=[("0", position)], ends=[end("0", last)], hub_created_at=created)
    error = found.partitions[0].error

    assert (error is None) if shown is None else (shown in (error or ""))
    assert ("set to a wrong number" in (error or "")) is (last < position)
    handled_count = position + 1 if shown is None else 0
    assert found.partitions[0].lag == last + 1 - handled_count


def test_a_lost_member_is_shown_as_long_as_its_record_is_there():
    """Also after others took its partitions; what it wrote last is not newer than that."""
    lost = Member(owner_id="a", incarnation="1", etag="e", last_modified=ago(240))
    alive = Member(owner_id="b", incarnation="2", etag="e", last_modified=ago(1))
    found = view([owned("0", "b", 1)], [lost, alive])

    assert [member.owner_id for member in found.members] == ["b"]
    assert as_json(found)["lost_members"] == [{"owner_id": "a", "silent_s": 240.0}]
    assert "lost, its newest record is 4 min old" in printed(found)


def test_a_member_on_standby_is_told():
    """It owns nothing, and that is in order."""
    waiting = Member(
        owner_id="b",
        incarnation="2",
        status=MemberStatus.STANDBY,
        etag="e",
        last_modified=ago(1),
    )
    found = view([owned("0", "a", 1)], [waiting])
    document: Any = as_json(found)

    assert "on standby" in printed(found)
    assert {m["owner_id"]: m["status"] for m in document["members"]}["b"] == "standby"


def test_an_owner_is_as_silent_as_its_newest_record_is_old():
    """That of the member, or that of a partition."""
    record = Member(owner_id="a", incarnation="1", etag="e", last_modified=ago(20))
    found = view([owned("0", "a", 7), owned("1", "a", 30), owned("2", "b", 9)], [record])

    assert {member.owner_id: member.silent_s for member in found.members} == {"a": 7, "b": 9}
