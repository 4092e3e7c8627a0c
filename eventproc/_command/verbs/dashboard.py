"""``eventproc dashboard``: a page that shows a group at work, and what is stuck."""

from eventproc._command.arguments.address import ShownAddress
from eventproc._command.dashboard.options import PageOptions
from eventproc._command.group.connection import connect


async def dashboard(*, address: ShownAddress, page: PageOptions) -> None:
    """Open a page that shows who owns what over time, lag, rates, and what is stuck and why.

    `eventproc status` prints the state and what needs attention once, as text.

    It only reads, and shows groups of any Azure SDK, too. While no browser looks, nothing is read.
    It also asks the event hub, for lag and rates, unless --without-hub is given. With
    --allow-changes it prints a URL with a token; whoever has that may also move checkpoints, pause
    and resume.

    It runs until Ctrl+C or SIGTERM.

    Exit codes: 0 stopped by a signal, 2 an option is wrong, 3 the store did not answer.
    """
    from eventproc._command.dashboard.program import run_page  # noqa: PLC0415 - an extra

    async with connect(address, hub_may_be_away=True) as connection:
        await run_page(connection, page)
