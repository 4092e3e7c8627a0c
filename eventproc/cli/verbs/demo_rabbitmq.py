"""``eventproc demo-rabbitmq``: pods of a StatefulSet share partition queues; check the result."""

import importlib
from collections.abc import Callable
from typing import Annotated

import typer

from eventproc.cli.demo.command import Format, ReportFormat, Store, run_demo
from eventproc.cli.demo.live import Screen
from eventproc.cli.demo.rabbitmq.report import Report
from eventproc.cli.demo.rabbitmq.scene import Scene
from eventproc.cli.demo.rabbitmq.screen import Lines, draw
from eventproc.cli.demo.rabbitmq.stage import QueueStage
from eventproc.cli.demo.rabbitmq.story import DemoRun
from eventproc.cli.demo.rabbitmq.summary import print_summary
from eventproc.cli.demo.stage import StoreChoice
from eventproc.extras import needing
from tests.servers.rabbitmq_broker import find_rabbitmq


def demo_rabbitmq(
    store: Store = StoreChoice.AUTO,
    output: Format = ReportFormat.TEXT,
    queues: Annotated[
        int, typer.Option(min=4, max=64, help="The number of partition queues.")
    ] = 12,
    orders: Annotated[
        int, typer.Option(min=1000, max=1_000_000, help="The number of orders to publish.")
    ] = 100_000,
) -> int:
    """See the pods of a StatefulSet share the queues of RabbitMQ, and lose no order.

    Starts RabbitMQ and a played Kubernetes API server on this machine, publishes keyed orders with
    confirms, and runs a process for each pod. Meanwhile the StatefulSet is scaled from 2 to 4 to 1
    to 3, one pod is killed, and one is frozen until the others have taken over and then continues.
    In the end the demo counts which orders were lost, came twice or out of order, and checks
    whether two pods handled one queue at the same time. If something is wrong, the exit code is 1.

    It needs RabbitMQ (`make rabbitmq` in a checkout, on Debian), but no cluster and no Docker. It
    takes about two minutes, and removes everything that it created.

    Exit codes: 0 no order lost, out of order or handled by two at once, 1 otherwise, 2 an option is
    wrong or RabbitMQ is missing, 130 interrupted.
    """
    for extra, module in (
        ("rabbitmq", "eventproc.sources.rabbitmq.queues"),
        ("kubernetes", "eventproc.rosters.kubernetes"),
    ):
        with needing(extra):
            importlib.import_module(module)
    find_rabbitmq()

    async def play(stage: QueueStage, screen: Screen[Scene]) -> Report:
        return await DemoRun(stage, order_count=orders, show=screen.show).play()

    def make_stage(print_line: Callable[[str], None]) -> QueueStage:
        return QueueStage(queue_count=queues, store=store, print_line=print_line)

    return run_demo(make_stage, play, Lines, draw, print_summary, output=output)
