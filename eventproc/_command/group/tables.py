"""A view of a group as tables for people."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from eventproc._base.logs import printable
from eventproc._command.group.records import title_of
from eventproc._command.group.view import GroupView, PlanRow, groups_text, in_order
from eventproc._command.terminal.console import cell, format_duration, plain_table
from eventproc._core.ownership.pauses import Pause, Pauses
from eventproc._core.placement.even import Even
from eventproc._core.watching.causes import Kind
from eventproc._core.watching.group import WatchedMember, WatchedPartition, listed
from eventproc.models import MemberStatus

_OTHERS: Final = (
    "Other {} in this store: {}. If a process is missing above, it may have been started in one."
)
CHECK_NAMES: Final = "check --eventhub, --consumer-group, --namespace and --store."
"""What to do if the store knows nothing of a hub's group."""


_STATUS: Final = {
    MemberStatus.STANDBY: "on standby: it takes over when a member of another deployment leaves",
    MemberStatus.LEAVING: "leaving",
    MemberStatus.RESTARTING: "restarting, and keeps its partitions meanwhile",
}


def as_tables(view: GroupView) -> RenderableType:
    """The view as two tables, partitions and members, below the names of the group."""
    title = Text(title_text(view), overflow="fold")
    absence = absence_lines(view)
    notes = [*absence, *pause_lines(view.pauses), *finding_lines(view)]
    pauses = [Text(line, style="yellow") for line in notes]
    if not view.partitions and not view.members and not view.dead:
        others = [Text(line, style="yellow") for line in other_lines(view)]
        return Group(title, Text(empty_text(view)), *others, *pauses)
    remarks = [*(Text(line, style="red") for line in damage_lines(view)), *pauses]
    partitions = partition_table(view)
    if view.lag is not None:
        partitions.add_row("all", "", "", "", "", f"{view.lag:,}", style="bold")
    members: list[RenderableType] = []
    if not view.members:
        members.append(Text("No members: no process of this group renews its records."))
    if view.members or view.dead:
        members.append(member_table(view))
    if view.others and view.is_recorded:
        live = view.live_others
        states = [
            "" if live is None else " (running)" if each in live else " (no live member)"
            for each in view.others
        ]
        names = [f"{each.name}{state}" for each, state in zip(view.others, states, strict=True)]
        kind = "groups of resources" if view.group.is_of_resources else "groups of this hub"
        members.append(Text(f"\n{_OTHERS.format(kind, printable(listed(names)))}"))
    return Group(title, partitions, *remarks, Text(), *members)


def title_text(view: GroupView) -> str:
    """The names of the group, the time of the view and what the group follows, in lines."""
    remark = f", {view.as_of:%Y-%m-%d %H:%M:%S} UTC by the store's clock"
    if view.placement is not None:
        remark += f", placement {printable(view.placement)}"
    if view.published is not None:
        remark += (
            f"\n{_plan_text(view.published)}, leader {printable(view.published.leader or 'none')}"
        )
    return title_of(view.group, remark).plain


def empty_text(view: GroupView) -> str:
    """What is said of a group of which the store knows nothing."""
    if view.group.is_of_resources:
        return "This group has no resources and no members in this store."
    return (
        "This group has no ownership records, checkpoints or members in this store. If a process "
        f"of it has run, {CHECK_NAMES}"
    )


def damage_lines(view: GroupView) -> list[str]:
    """What of the group's records cannot be read, and the remedy."""
    lines = [
        printable(f"partition {row.partition_id} is not served: {row.error}")
        for row in view.partitions
        if row.error is not None
    ]
    if view.published is not None and view.published.error is not None:
        lines.append(printable(f"the published plan cannot be read: {view.published.error}"))
    return lines


def absence_lines(view: GroupView) -> list[str]:
    """What is said of a hub's group without records: its name may be mistyped."""
    if view.is_recorded or not view.partitions:
        return []
    lines = [f"No process of this group has run with this store yet. If one has, {CHECK_NAMES}"]
    return lines + other_lines(view)


def other_lines(view: GroupView) -> list[str]:
    """Which other groups the store has."""
    text = printable(groups_text(view.others)).removeprefix(". ")
    return [f"{text}."] if text else []


_SHOWN_ELSEWHERE: Final = frozenset({Kind.DAMAGED, Kind.PAUSED})


def finding_lines(view: GroupView) -> list[str]:
    """What needs attention, and what to do; without damage and pauses, which have own lines."""
    return [
        printable(f"{finding.kind}: {finding.text} {finding.remedy}")
        for finding in view.findings
        if finding.kind not in _SHOWN_ELSEWHERE
    ]


def named_pauses(pauses: Pauses) -> list[tuple[str, Pause]]:
    """What is paused, in words, each with its pause."""
    found = [] if pauses.group is None else [("the whole group", pauses.group)]
    return found + [
        (f"partition {p}", pauses.by_partition[p]) for p in in_order(pauses.by_partition)
    ]


def pause_lines(pauses: Pauses) -> list[str]:
    """What an operator paused, since when and why."""
    return [
        printable(f"{what} is paused since {pause.since:%Y-%m-%d %H:%M:%S} UTC: {pause.reason}")
        for what, pause in named_pauses(pauses)
    ]


def _plan_text(published: PlanRow) -> str:
    if published.number is not None:
        return f"published plan {published.number}"
    return "no published plan yet" if published.error is None else "damaged published plan"


def partition_table(view: GroupView) -> Table:
    """The partitions or resources, in the order of the view."""
    if view.group.is_of_resources:
        numbers: tuple[str, ...] = ("record", "epoch")
        table = plain_table("resource", "holder", *numbers, numbers=numbers)
        for row in view.partitions:
            name = cell(row.name)
            table.add_row(name, _owner(row), _ago(row.renewed_ago_s), cell(str(row.epoch)))
        return table
    numbers = ("record", "position", "checkpoint", "lag")
    table = plain_table("partition", "owner", *numbers, numbers=numbers)
    for row in view.partitions:
        table.add_row(
            cell(row.partition_id),
            _owner(row),
            _ago(row.renewed_ago_s),
            cell("" if row.position is None else f"{row.position:,}"),
            _checkpoint(row),
            cell("?" if row.lag is None else f"{row.lag:,}"),
        )
    return table


def _ago(seconds: float | None) -> Text:
    return cell("" if seconds is None else f"{_age(seconds)} ago")


def _age(seconds: float) -> str:
    return format_duration(timedelta(seconds=seconds))


def _checkpoint(row: WatchedPartition) -> Text:
    if row.error is not None:
        return cell("not served", style="red")
    return _ago(row.written_ago_s)


def _owner(row: WatchedPartition) -> Text:
    if row.owner_id is None:
        return cell("unowned", style="yellow")
    if row.is_expired:
        return cell(f"{row.owner_id} (expired)", style="red")
    if row.pause is not None:
        return cell(f"{row.owner_id} (paused)", style="yellow")
    return cell(row.owner_id)


def member_table(view: GroupView) -> Table:
    """The members; what their placements regard has columns where it is not the default."""
    count = "resources" if view.group.is_of_resources else "partitions"
    extra = _placement_columns(view.members)
    numbers = {count, *extra} - {"placement"}
    table = plain_table("member", count, *extra, "remarks", numbers=numbers)
    for number, row in enumerate(view.members):
        remarks = [f"eventproc {row.record.version}" if row.record.version else ""]
        if row.record.status is not MemberStatus.ACTIVE:
            remarks.append(_STATUS[row.record.status])
        if not row.has_record:
            remarks.append(
                "no member record: a processor of an Azure SDK, or it could not be written"
            )
        elif not row.record.hands_over:
            remarks.append("does not hand over")
        values = [column[number] for column in extra.values()]
        text = ", ".join(filter(None, remarks))
        table.add_row(*map(cell, (row.owner_id, str(row.partition_count), *values, text)))
    for row in view.dead:
        # It was alive when it wrote its newest record; others have replaced its leases since.
        silent = "" if row.silent_s is None else f", its newest record is {_age(row.silent_s)} old"
        texts = (row.owner_id, "", *("" for _ in extra), f"lost{silent}")
        table.add_row(*(cell(text, style="red") for text in texts))
    return table


def _placement_columns(members: Sequence[WatchedMember]) -> dict[str, list[str]]:
    """The columns that have something to say, with a text for each member."""
    columns: dict[str, list[str]] = {}
    records = [each.record if each.has_record else None for each in members]
    known = [record for record in records if record is not None]
    if any(record.placement != Even().name for record in known):
        columns["placement"] = ["" if r is None else r.placement for r in records]
        if any(record.ordinal is not None for record in known):
            columns["ordinal"] = [_text(None if r is None else r.ordinal) for r in records]
    if any(record.weight != 1 for record in known):
        columns["weight"] = ["" if r is None else f"{r.weight:g}" for r in records]
    if any(record.capacity is not None for record in known):
        columns["capacity"] = [_text(None if r is None else r.capacity) for r in records]
    return columns


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
