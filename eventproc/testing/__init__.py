"""Test tools for users' handlers, stores and sources; eventproc's own tests use them, too."""

from eventproc._base import public_names as _public_names
from eventproc.testing._azurite import Azurite
from eventproc.testing._clauses import ClauseReport
from eventproc.testing._faults import FaultyCheckpointStore, StoreFaults
from eventproc.testing._harness.harness import HandlerTestHarness
from eventproc.testing._harness.record import Closing, HandlerCall
from eventproc.testing._placement_contract.contract import PlacementReport, check_placement
from eventproc.testing._rehearsal.database import Database
from eventproc.testing._rehearsal.fakes import Clock, Ledger
from eventproc.testing._rehearsal.judgement import Promise
from eventproc.testing._rehearsal.rehearse import BrokenPromise, rehearse
from eventproc.testing._source_contract.bench import SourceBench
from eventproc.testing._source_contract.contract import check_event_source, source_clause_names
from eventproc.testing._store_contract.bench import LoseAnswers
from eventproc.testing._store_contract.contract import check_checkpoint_store, clause_names
from eventproc.testing._virtual_time import (
    DeadlockError,
    LivelockError,
    VirtualTimeLoop,
    run_virtual,
)

__all__ = [
    "Azurite",
    "BrokenPromise",
    "ClauseReport",
    "Clock",
    "Closing",
    "Database",
    "DeadlockError",
    "FaultyCheckpointStore",
    "HandlerCall",
    "HandlerTestHarness",
    "Ledger",
    "LivelockError",
    "LoseAnswers",
    "PlacementReport",
    "Promise",
    "SourceBench",
    "StoreFaults",
    "VirtualTimeLoop",
    "check_checkpoint_store",
    "check_event_source",
    "check_placement",
    "clause_names",
    "rehearse",
    "run_virtual",
    "source_clause_names",
]

_public_names.set_module(__name__, globals())
