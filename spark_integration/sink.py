"""The sink for ``foreachBatch``: the same handlers and the same checkpoints, as a callable."""

from typing import TYPE_CHECKING, NoReturn

from eventproc.errors import ConfigurationError
from eventproc.handler import HandlerFactory
from spark_integration.sink_options import parse_sink_options
from spark_integration.sink_records import BatchSummary

if TYPE_CHECKING:  # importing this package needs neither Spark nor Java
    from pyspark.sql import DataFrame


class CheckpointingSink:
    """Pass it to ``foreachBatch``: hand the batch to handlers, then move the checkpoints.

    The order is the guarantee: what is not committed comes again, marked as a replay. It does what
    ``writeStream.format("eventproc")`` does, so a batch can be written elsewhere as well before or
    after it; call it from a function of your own, once for each batch.
    """

    def __init__(self, handler: str | HandlerFactory, **options: str) -> None:
        """Check the options; nothing is opened.

        Args:
            handler: The handler's class, or ``module:Class``. A class of your main program travels
                by value.
            options: Those of the sink, by their names: ``checkpointStore="sqlite:group.db"``.

        Raises:
            ConfigurationError: an option is unknown, missing, or says what cannot work.
        """
        self._options = parse_sink_options(options, handler=handler)
        self._last_batch: BatchSummary | None = None

    def __reduce__(self) -> NoReturn:
        """Refuse to travel: Spark Connect would send it to its server, to no effect."""
        raise _refused_on_connect()

    @property
    def last_batch(self) -> BatchSummary | None:
        """What the last committed batch did: for your own metrics."""
        return self._last_batch

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Handle a batch and write its checkpoints.

        Raises:
            ConfigurationError: the session is one of Spark Connect.
            FencedError: somebody else works for the same group.
            OrderLostError: rows of a partition are spread over tasks.
            StoreUnavailableError: the store does not answer.
        """
        if not hasattr(batch, "_jdf"):
            raise _refused_on_connect()
        from spark_integration.sink_batch import handle_frame  # noqa: PLC0415 - Spark is an extra

        self._last_batch = handle_frame(self._options, batch, batch_id)


def _refused_on_connect() -> ConfigurationError:
    return ConfigurationError(
        "a CheckpointingSink cannot work on Spark Connect, where foreachBatch does not tell tasks "
        "which query they belong to: use writeStream.format('eventproc') with the option 'handler'"
    )
