"""What eventproc is tested with, for those who test their own handlers, stores and sources."""

from eventproc.testing._stage_record import Closing, HandlerCall
from eventproc.testing._store_bench import LoseAnswers
from eventproc.testing.azurite import Azurite
from eventproc.testing.faults import FaultyCheckpointStore, StoreFaults
from eventproc.testing.kafka_broker import KafkaBroker
from eventproc.testing.lossy_proxy import LossyProxy
from eventproc.testing.stage import HandlerStage
from eventproc.testing.store_contract import (
    ClauseReport,
    check_checkpoint_store,
    clause_names,
)
from eventproc.testing.virtual_time import (
    DeadlockError,
    LivelockError,
    VirtualTimeLoop,
    run_virtual,
)

__all__ = [
    "Azurite",
    "ClauseReport",
    "Closing",
    "DeadlockError",
    "FaultyCheckpointStore",
    "HandlerCall",
    "HandlerStage",
    "KafkaBroker",
    "LivelockError",
    "LoseAnswers",
    "LossyProxy",
    "StoreFaults",
    "VirtualTimeLoop",
    "check_checkpoint_store",
    "clause_names",
    "run_virtual",
]
