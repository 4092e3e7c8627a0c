"""Two log lines for an outage, however long."""

import logging

from checkpointstores._reachability import Reachability
from eventproc.logs import get_logger


def test_an_outage_is_said_once_and_its_end_once(caplog):
    """And nothing at all while everything works."""
    caplog.set_level(logging.INFO, "eventproc")
    reachability = Reachability(get_logger("eventproc.stores.test", container="c"))
    reachability.answered()
    for _ in range(5):
        reachability.failed(RuntimeError("gone"))
    reachability.answered()
    reachability.answered()
    first, second = caplog.records

    assert (first.msg, first.error, first.container) == ("store_stopped_answering", "gone", "c")
    assert (second.msg, second.failures) == ("store_answered_again", 5)
