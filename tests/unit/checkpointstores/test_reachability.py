"""Outages and refusals are logged when they begin and when they end, however long they last."""

import logging

from checkpointstores._requests import Reachability
from eventproc._base.logs import get_logger


def test_an_outage_and_its_end_are_logged_once_each(caplog):
    """While everything works nothing is logged."""
    caplog.set_level(logging.INFO, "eventproc")
    reachability = Reachability(get_logger("eventproc.stores.test", container="c"))
    reachability.answered("read blobs")
    for _ in range(5):
        reachability.failed(RuntimeError("gone"))
    reachability.answered("read blobs")
    reachability.answered("read blobs")
    first, second = caplog.records

    assert (first.event, first.error, first.container) == ("store_requests_failed", "gone", "c")
    assert (second.event, second.failures) == ("store_requests_recovered", 5)


def test_each_reason_of_a_refusal_and_its_end_are_logged_once(caplog):
    """Successful calls that need another right do not end it."""
    caplog.set_level(logging.INFO, "eventproc")
    reachability = Reachability(get_logger("eventproc.stores.test"))
    for _ in range(3):
        reachability.refused("delete blobs", RuntimeError("no right to delete"))
        reachability.answered("read blobs")
    for right in ("read blobs", "write blobs"):
        reachability.refused(right, RuntimeError("expired"))
    reachability.answered("read blobs")
    between = [(r.event, r.error) for r in caplog.records]
    caplog.clear()
    reachability.answered("write blobs")
    reachability.answered("delete blobs")

    assert between == [("store_refused", "no right to delete"), ("store_refused", "expired")]
    assert [(r.event, r.error) for r in caplog.records] == [
        ("store_refused_no_longer", "expired"),
        ("store_refused_no_longer", "no right to delete"),
    ]


def test_a_refusal_ends_an_outage(caplog):
    """The store answers again, even if it refuses."""
    caplog.set_level(logging.INFO, "eventproc")
    reachability = Reachability(get_logger("eventproc.stores.test"))
    reachability.failed(RuntimeError("gone"))
    reachability.refused("read blobs", RuntimeError("expired"))

    assert [r.event for r in caplog.records] == [
        "store_requests_failed",
        "store_requests_recovered",
        "store_refused",
    ]
