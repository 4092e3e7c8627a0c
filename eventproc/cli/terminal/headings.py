"""Help with the options of a verb under headings, where it has many."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from eventproc.cli.terminal.plain_help import PlainCommand

HEADINGS: Final[Mapping[str, Sequence[str]]] = {
    "Event hub": (
        *("--eventhub", "--consumer-group", "--connection-string", "--namespace"),
        *("--custom-endpoint", "--transport"),
    ),
    "Resources": ("--group", "--resources", "--resources-from", "--every"),
    "Store": (
        *("--store", "--create-container", "--storage-connection-string", "--storage-account"),
    ),
    "Process and workers": (
        *("--workers", "--owner-id", "--shutdown-timeout", "--stop-at-eof"),
        *("--deployment-id", "--static-membership", "--roster"),
    ),
    "Health and logs": (
        *("--http", "--stall-timeout", "--failover-timeout", "--log-format", "--log-level"),
    ),
    "Delivery": (
        *("--start", "--recreated-hub", "--batch-size", "--batch-min", "--batch-wait"),
        *("--checkpoint-events", "--checkpoint-interval", "--key-concurrency", "--key-property"),
        *("--rate", "--partition-rate"),
    ),
    "Events that fail": ("--attempts", "--deliveries", "--give-up", "--dead-letters"),
    "Sharing in the group": (
        *("--strategy", "--placement", "--weight", "--capacity", "--ordinal"),
        *("--interval", "--expiration"),
    ),
    "Connections to Azure": ("--ca-bundle", "--proxy"),
}
"""The options under each heading, in the order of the help."""

OTHERS: Final = "Other options"
"""The last heading, for options that are under none of these."""


class HeadedCommand(PlainCommand):
    """A verb whose help has ``HEADINGS``."""

    # ``Any``: typer has a click of its own, without public types.
    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the arguments, and the options under their headings."""
        rows: dict[str, tuple[str, str]] = {}
        arguments: list[tuple[str, str]] = []
        for parameter, row in self.rows(ctx):
            if parameter.param_type_name == "argument":
                arguments.append(row)
            else:
                rows[parameter.opts[0]] = row
        sections = {"Arguments": arguments}
        for heading, options in HEADINGS.items():
            sections[heading] = [rows.pop(option) for option in options if option in rows]
        sections[OTHERS] = list(rows.values())
        for heading, shown in sections.items():
            if shown:
                with formatter.section(heading):
                    formatter.write_dl(shown)
