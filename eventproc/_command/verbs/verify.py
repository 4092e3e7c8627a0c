"""``eventproc verify``: check on a new hub and an empty container what eventproc assumes."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from eventproc._base.extras import needing
from eventproc._base.settings import PositiveSpan
from eventproc._command.arguments.access import (
    HUB_VARIABLE,
    KAFKA_ENDPOINT,
    TransportName,
    secret_of_option,
)
from eventproc._command.arguments.address import HubAndStore
from eventproc._command.arguments.sources import OTHER_BROKERS, make_source
from eventproc._command.terminal.console import format_duration, standard_output
from eventproc.errors import ConfigurationError, MissingExtraError
from eventproc.ports import EventSource


@dataclass(frozen=True, kw_only=True)
class EmptyHubAndContainer(HubAndStore):
    """The hub and the container that are checked: no other source and no other store."""

    store: Annotated[
        str,
        typer.Option(
            "--store",
            envvar="EVENTPROC_STORE",
            metavar="blob:CONTAINER",
            help="An empty container, which nobody else uses.",
        ),
    ]
    connection_string: Annotated[
        str,
        typer.Option(
            envvar=HUB_VARIABLE,
            metavar="TEXT",
            callback=secret_of_option,
            help="The connection string of the Event Hubs namespace or hub, instead of --namespace "
            "and an identity, or file:PATH. It is a secret: prefer the environment variable or a "
            "file.",
        ),
    ] = field(default="", repr=False)
    eventhub: Annotated[
        str,
        typer.Option(
            envvar="EVENTPROC_EVENTHUB",
            metavar="NAME",
            help="A new event hub, which nobody else uses. Not needed if the connection string has "
            "EntityPath=NAME.",
        ),
    ] = ""


async def verify(
    *,
    address: EmptyHubAndContainer,
    report: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Write all checks and their results here, as Markdown, without names and keys.",
        ),
    ] = Path("eventproc-verify.md"),
    idle: Annotated[
        PositiveSpan, typer.Option(help="How long a link is left without events.")
    ] = timedelta(minutes=5),
) -> int:
    """Check that Event Hubs and Blob Storage do what eventproc assumes, on a hub of your own.

    It takes ten minutes, a new event hub with three partitions or more and the consumer groups
    $Default and audit, and an empty container (--store blob:CONTAINER) that nobody else uses.
    It deletes the blobs that it wrote. Events cannot be deleted: delete the hub afterwards. Each
    check names the code that relies on it.

    With connection strings in place of an identity it also checks how keys and missing rights are
    refused.

    Exit codes: 0 nothing that was checked differs from what we assume, 1 something does, 2 hub or
    container are not empty or cannot be used like this, 3 one of them did not answer.
    """
    with needing("eventhubs"):
        from eventproc._command.verify import bench as benches  # noqa: PLC0415 - of an extra
        from eventproc._command.verify.report import counted, exit_code_of, report_of  # noqa: PLC0415
        from eventproc._command.verify.run import (  # noqa: PLC0415
            Finding,
            chapters_of,
            checks_in,
            run_checks,
        )
        from eventproc.sources.eventhubs._client import EventHubAddress  # noqa: PLC0415
    container = benches.ContainerBench(address)
    if address.connection_string.startswith(OTHER_BROKERS) or not (
        address.connection_string or address.namespace
    ):
        raise ConfigurationError(
            "which event hub? Give --namespace and --eventhub, or a connection string of Event Hubs"
        )
    address.check()
    hub = address.over_amqp(EventHubAddress, address.eventhub or None)
    console = standard_output()
    total = len(list(checks_in(chapters_of(None, None, None))))
    findings: list[Finding] = []

    def show(finding: Finding) -> None:
        findings.append(finding)
        took = format_duration(finding.check.took) if finding.check.took is not None else ""
        console.print(
            f"{len(findings):>3}/{total}  {finding.result.value:<27}  {took:>6}  "
            f"{finding.service}: {finding.title}"
        )
        if finding.details:
            console.print(
                f"{'':9}{finding.details}\n{'':9}relied on by {finding.check.relied_on_by}"
            )

    def show_left(left: str) -> None:
        console.print(f"{left}. Delete the container")

    is_emulator = not hub.options.is_tls_on
    await hub.open()
    try:
        kafka = None if is_emulator else _kafka(address, hub.name)
        bench = benches.HubBench(hub, idle=idle, kafka=kafka)
        async with bench.producer:
            await run_checks(bench, container, show, show_left)
    finally:
        hub.close()
    service = "the emulator" if is_emulator else "Event Hubs"
    service += " and " + ("Azurite" if container.noted.is_emulator else "Blob Storage")
    names = {hub.namespace, hub.name, *container.names}
    report.write_text(report_of(findings, names, service=service))
    counts = counted(findings).items()
    console.print("", *(f"{count} {result.value}" for result, count in counts), sep="\n")
    console.print(f"written without names and keys to {report}")
    return exit_code_of(findings)


def _kafka(address: HubAndStore, eventhub: str) -> Callable[[], EventSource] | None:
    """Return what makes a source over the Kafka endpoint; ``None`` without its extra."""
    over_kafka = (
        replace(address, transport=TransportName.KAFKA)
        if address.namespace
        else replace(address, connection_string=KAFKA_ENDPOINT + address.connection_string)
    )
    try:
        make_source(over_kafka, eventhub)
    except MissingExtraError:
        return None
    return lambda: make_source(over_kafka, eventhub)
