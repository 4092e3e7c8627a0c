"""The sink for ``foreachBatch``, as a callable."""

import os
from typing import TYPE_CHECKING, Final, NoReturn

from eventproc._delivery.handler import HandlerFactory
from eventproc.errors import ConfigurationError
from spark_integration._sink.options import parse_sink_options
from spark_integration._sink.records import BatchSummary

if TYPE_CHECKING:  # importing this package needs neither Spark nor Java
    from pyspark.sql import DataFrame


ON_CONNECT: Final = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable that PySpark sets while a session of Spark Connect exists."""


class CheckpointingSink:
    """Calls handlers with the rows of a batch, then commits the checkpoints. For ``foreachBatch``.

    Checkpoints are committed after all handlers are done, so a batch that was not committed is
    delivered again, with ``context.is_replay`` set. The guarantees are those of
    ``writeStream.format("eventproc")``. To write the batch elsewhere as well, call the sink from a
    function of your own, once for each batch.
    """

    __module__ = "spark_integration"

    def __init__(self, handler: str | HandlerFactory, **options: str) -> None:
        """Check the options, without opening anything.

        Args:
            handler: The handler's class, or ``module:Class``. A class of the main program is sent
                to the executors by value.
            options: Options of the sink by name, such as ``checkpointStore="sqlite:group.db"``.

        Raises:
            ConfigurationError: an option is unknown, missing or invalid, or the program uses Spark
                Connect.
        """
        if ON_CONNECT in os.environ:
            raise _refused_on_connect()
        self._options = parse_sink_options(options, handler=handler)
        self._last_batch: BatchSummary | None = None

    def __reduce__(self) -> NoReturn:
        """Raise: only Spark Connect pickles a sink, to run it on the server, which cannot work.

        ``__init__`` misses a sink that was made before the session. PySpark shows this error only
        as the context of its own.
        """
        raise _refused_on_connect()

    @property
    def last_batch(self) -> BatchSummary | None:
        """Counts of the last committed batch, for metrics of your own."""
        return self._last_batch

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        """Handle a batch and write its checkpoints.

        Raises:
            ConfigurationError: the session is one of Spark Connect.
            FencedError: another writer works for the same consumer group.
            OrderLostError: several tasks have rows of one partition.
            StoreUnavailableError: the store did not answer within ``operationTimeout``.
        """
        if not hasattr(batch, "_jdf"):
            raise _refused_on_connect()
        from spark_integration._sink.batch import handle_frame  # noqa: PLC0415 - Spark is an extra

        self._last_batch = handle_frame(self._options, batch, batch_id)


def _refused_on_connect() -> ConfigurationError:
    return ConfigurationError(
        "a CheckpointingSink cannot work on Spark Connect, where foreachBatch does not tell tasks "
        "which query they belong to: use writeStream.format('eventproc') with the option 'handler'"
    )
