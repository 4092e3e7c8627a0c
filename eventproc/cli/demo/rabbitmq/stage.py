"""The stage of the demo: a RabbitMQ broker beside the store."""

from collections.abc import Callable
from typing import Final

from eventproc.cli.access.hub import HUB_VARIABLE
from eventproc.cli.demo.children import Child
from eventproc.cli.demo.stage import EXPIRATION_S, INTERVAL_S, Stage, StoreChoice
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup
from tests.servers.rabbitmq_broker import RabbitMqBroker

PREFIX: Final = "OrderEvents"
BROKER_VARIABLE: Final = "EVENTPROC_DEMO_BROKER"
"""Environment variable: the AMQP URL of the broker."""

HANDLER: Final = "eventproc.cli.demo.rabbitmq.handler:OrderHandler"
ROSTER: Final = "eventproc.cli.demo.rabbitmq.pod:roster"


class QueueStage(Stage):
    """Starts a broker, and processes that use it."""

    def __init__(
        self, *, queue_count: int, store: StoreChoice, print_line: Callable[[str], None]
    ) -> None:
        super().__init__(store=store, print_line=print_line)
        self.queue_count = queue_count
        self.broker = RabbitMqBroker()

    async def _start_source(self) -> None:
        self._print_line("starting RabbitMQ")
        self._stack.callback(self.broker.stop)
        try:
            await self._finish_start(self.broker.start)
        except RuntimeError as error:
            raise ConfigurationError(str(error)) from error
        self.environment[BROKER_VARIABLE] = self.broker.url

    @property
    def group(self) -> ConsumerGroup:
        """The group of the pods."""
        from eventproc.sources.rabbitmq.queues import RabbitQueues  # noqa: PLC0415 - an extra

        source = RabbitQueues(self.broker.url, prefix=PREFIX, count=self.queue_count)
        return ConsumerGroup(
            fully_qualified_namespace=source.fully_qualified_namespace,
            eventhub_name=source.eventhub_name,
        )

    def start_pod(self, name: str, number: int, kubeconfig: str) -> Child:
        """Start a pod's process, by the command that a user would type.

        Args:
            name: of the pod.
            number: which process of this pod it is: its files are named so.
            kubeconfig: where the API server is.
        """
        source = f"{self.broker.url}?queues={self.queue_count}"
        self.environment |= {HUB_VARIABLE: source, "POD_NAME": name, "KUBECONFIG": kubeconfig}
        options = (
            f"--eventhub {PREFIX} --roster {ROSTER} --placement Published:Ordinal "
            f"--interval {INTERVAL_S}s --expiration {EXPIRATION_S}s --shutdown-timeout 10s "
            "--log-format json --stop-at-eof"
        )
        command = ["-m", "eventproc.cli", "run", HANDLER, "--store", self.note.spec]
        return self.start(f"{name}.{number}", [*command, *options.split()])

    def start_publisher(self, count: int, *, rate: float) -> Child:
        """Start the publisher: *count* orders, at *rate* orders a second."""
        progress = str(self.folder / "published")
        module = "eventproc.cli.demo.rabbitmq.publisher"
        return self.start(
            "publisher", ["-m", module, str(count), str(self.queue_count), str(rate), progress]
        )
