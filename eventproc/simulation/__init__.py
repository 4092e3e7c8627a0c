"""What a fleet will do, before it is built: whole groups of the real processor on virtual time.

``Script`` says what happens, ``play`` lets it happen and returns the ``History``, and
``report_of`` says what it cost. The store is passed in, as a ``StoreFactory``. ``SYSTEMS`` names
the processors of other makes that can play instead.
"""

from eventproc.simulation.foreign import ForeignProcessor, Habits
from eventproc.simulation.history import History
from eventproc.simulation.price import PriceList
from eventproc.simulation.report import EventReport, Report, Totals, report_of
from eventproc.simulation.script import Action, Script, ScriptedEvent, parse_event
from eventproc.simulation.systems import SYSTEMS
from eventproc.simulation.world import StoreFactory, World, play

__all__ = [
    "SYSTEMS",
    "Action",
    "EventReport",
    "ForeignProcessor",
    "Habits",
    "History",
    "PriceList",
    "Report",
    "Script",
    "ScriptedEvent",
    "StoreFactory",
    "Totals",
    "World",
    "parse_event",
    "play",
    "report_of",
]
