"""The options of ``eventproc dashboard``."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import typer

from eventproc._base.http.address import ListenAddress, parse_address
from eventproc._base.settings import PositiveSpan
from eventproc._command.arguments.grouped import DEFAULTS
from eventproc._command.arguments.options import Expiration, ReadingInterval
from eventproc._core.watching.causes import STUCK_AFTER_S
from eventproc.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """What an operator asks of the page."""

    expiration: Expiration = DEFAULTS.ownership_expiration
    http: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Where to serve the page. Without HOST only this machine can open it.",
        ),
    ] = "127.0.0.1:8787"
    allow_host: Annotated[
        list[str],
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A host name under which browsers reach the page, for example that of a proxy. "
            "Repeat it for more. Requests for other names are refused.",
            show_default=False,
        ),
    ] = ()  # type: ignore[assignment]
    every: Annotated[
        ReadingInterval, typer.Option(help="The time between two readings, while a browser looks.")
    ] = timedelta(seconds=2)
    stuck_after: Annotated[
        PositiveSpan,
        typer.Option(
            help="A partition with waiting events whose checkpoint does not move for so long is "
            "stuck. Give more than the time between two checkpoints."
        ),
    ] = timedelta(seconds=STUCK_AFTER_S)
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="Let whoever opens the page with the printed URL move checkpoints, pause and "
            "resume.",
        ),
    ] = False
    lookup_group: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With --allow-changes: a consumer group without processors, through which single "
            "events are read, so that a reset does not interrupt the owner.",
            show_default=False,
        ),
    ] = ""

    def __post_init__(self) -> None:
        """Refuse an address that no browser can open."""
        if self.listen.path:
            raise ConfigurationError(f"--http is {self.http!r}: a browser needs [HOST:]PORT")

    @property
    def listen(self) -> ListenAddress:
        """Where to serve the page."""
        return parse_address(self.http, "--http")
