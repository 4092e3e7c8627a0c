"""Dead letters as messages of a RabbitMQ exchange."""

from typing import Annotated

from eventproc.errors import (
    ConfigurationError,
    DeadLetterError,
    SourceError,
    SourceRejectedError,
    SuspectSettingError,
)
from eventproc.models import DeadLetter
from eventproc.ports import DeadLetterSink
from eventproc.settings import SECRET, checked
from eventproc.sources.rabbitmq.queues.amqp import Broker
from eventproc.sources.rabbitmq.queues.options import QueueOptions
from eventproc.sources.rabbitmq.queues.source import HEARTBEAT_DEFAULT


class RabbitDeadLetterSink(DeadLetterSink):
    """Publishes each dead letter as JSON, and waits for the broker's confirmation.

    A letter that no queue takes is an error: the event stays until one is bound.

    Args:
        url: ``amqp://USER:PASSWORD@HOST:PORT/VHOST``, or ``amqps://`` with TLS.
        exchange: the exchange to publish to; it must exist. Empty: the default exchange, which
            routes to the queue that the routing key names.
        routing_key: of each letter.

    Raises:
        ConfigurationError: an argument is not valid.
    """

    @checked
    def __init__(
        self, url: Annotated[str, SECRET], *, exchange: str = "", routing_key: str = ""
    ) -> None:
        if not (exchange or routing_key):
            raise ConfigurationError("give exchange=, or routing_key= with the name of a queue")
        self._exchange = exchange
        self._routing_key = routing_key
        self._broker = Broker(
            url,
            heartbeat_s=int(HEARTBEAT_DEFAULT.total_seconds()),
            timeout=QueueOptions().connect_timeout,
        )

    async def open(self) -> None:
        """Check that the exchange, or the queue, exists.

        Raises:
            ConfigurationError: it does not exist, or the broker refuses the user.
            DeadLetterError: no answer; try again.
        """
        try:
            if self._exchange:
                await self._broker.check_exchange(self._exchange)
            else:
                await self._broker.depths([self._routing_key])
        except (SourceRejectedError, SuspectSettingError) as error:
            raise ConfigurationError(f"dead letters cannot be stored: {error}") from error
        except SourceError as error:
            raise DeadLetterError(str(error)) from error

    async def close(self) -> None:
        """Close the connection."""
        await self._broker.close()

    async def store(self, letter: DeadLetter) -> None:
        """Publish the letter.

        Raises:
            DeadLetterError: it was not confirmed, or no queue takes it.
        """
        try:
            await self._broker.publish(
                letter.to_json(),
                exchange=self._exchange,
                routing_key=self._routing_key,
                content_type="application/json",
                message_id=letter.event.message_id,
            )
        except SourceError as error:
            raise DeadLetterError(str(error)) from error
