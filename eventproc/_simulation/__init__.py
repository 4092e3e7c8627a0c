"""Simulate whole groups of real processors on virtual time, to plan a group before it is built.

A ``Script`` lists what happens, ``run_script`` runs it and returns a ``History``, and ``report_of``
computes what it cost. The caller passes the store in, as a ``StoreFactory``.
"""

from eventproc._simulation.history import History
from eventproc._simulation.price import PRICES, PriceList
from eventproc._simulation.report import EventReport, Report, Totals, report_of
from eventproc._simulation.scaled_world import run_script
from eventproc._simulation.scaling_report import LoadReport, ScalingReport, scaling_report_of
from eventproc._simulation.script import Action, Scaling, Script, ScriptedEvent, parse_event
from eventproc._simulation.world import StoreFactory

__all__ = [
    "PRICES",
    "Action",
    "EventReport",
    "History",
    "LoadReport",
    "PriceList",
    "Report",
    "Scaling",
    "ScalingReport",
    "Script",
    "ScriptedEvent",
    "StoreFactory",
    "Totals",
    "parse_event",
    "report_of",
    "run_script",
    "scaling_report_of",
]
