"""What eventproc is tested with, for those who test their own stores, sources and handlers."""

from eventproc.testing._store_bench import LoseAnswers
from eventproc.testing.azurite import Azurite
from eventproc.testing.faults import FaultyCheckpointStore, StoreFaults
from eventproc.testing.lossy_proxy import LossyProxy
from eventproc.testing.store_contract import (
    ClauseReport,
    check_checkpoint_store,
    clause_names,
)
from eventproc.testing.virtual_time import DeadlockError, VirtualTimeLoop, run_virtual

__all__ = [
    "Azurite",
    "ClauseReport",
    "DeadlockError",
    "FaultyCheckpointStore",
    "LoseAnswers",
    "LossyProxy",
    "StoreFaults",
    "VirtualTimeLoop",
    "check_checkpoint_store",
    "clause_names",
    "run_virtual",
]
