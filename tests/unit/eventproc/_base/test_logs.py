"""Log events: as records for the program's own logging, and as lines for people and programs."""

import json
import logging
import subprocess
import sys
from datetime import datetime
from logging.handlers import BufferingHandler

import pytest

from eventproc._base.logs import (
    ConditionLogger,
    JsonLines,
    TextLines,
    configure,
    get_logger,
    printable,
    with_fields_of_processor,
)
from eventproc.errors import ConfigurationError

FAILING = """
import os, signal
from checkpointstores.memory import MemoryCheckpointStore
from eventproc import EventProcessor, PartitionHandler
from eventproc.sources.memory import MemoryEventSource, MemoryHub

{before}
hub = MemoryHub(1)
hub.publish(b"order")
signals = [signal.SIGTERM]

class OrderHandler(PartitionHandler):
    async def process_event(self, context, event):
        raise LookupError("no such customer:\\n4711")

    async def process_error(self, context, error):
        signals and os.kill(os.getpid(), signals.pop())

EventProcessor(
    source=MemoryEventSource(hub), store=MemoryCheckpointStore(), handler=OrderHandler
).run()
"""
"""A user's program whose handler fails at the first event, and which stops then."""


def stderr_lines(before: str) -> list[str]:
    """Return the lines that such a program writes to standard error."""
    done = subprocess.run(
        [sys.executable, "-c", FAILING.replace("{before}", before)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.splitlines()


def failure(text=""):
    """Return an error that was raised."""
    try:
        if text:
            raise ValueError(text)  # noqa: TRY301 - a text as it is, without a repr
        int("oops")
    except ValueError as error:
        return error
    raise AssertionError


@pytest.fixture
def logger(caplog):
    """A logger of this library, all of whose events are captured."""
    caplog.set_level(logging.DEBUG, "eventproc")
    fields = {"owner_id": "a", "consumer_group": "$Default"}
    return with_fields_of_processor(get_logger("eventproc.x"), fields).bind(partition_id="3")


@pytest.fixture
def unconfigured():
    """Undo what ``configure`` does to the process."""
    ours = logging.getLogger("eventproc")
    handlers, level, propagate = list(ours.handlers), ours.level, ours.propagate
    yield ours
    ours.handlers[:] = handlers
    ours.setLevel(level)
    ours.propagate = propagate


def test_a_failed_handler_is_logged_without_any_logging_configuration():
    """In one line: time, level, logger, event, partition, sequence number, error and its place."""
    (failed,) = stderr_lines("")

    assert "WARNING eventproc.processor: handler_failed partition_id=0 " in failed
    assert "sequence_number=0 attempt=1 error=LookupError('no such customer:\\n4711')" in failed
    assert failed.endswith("(raised at <string>:14 in process_event)")


def test_with_basic_config_a_failed_handler_is_logged_with_its_traceback():
    """Nothing else needs to be configured."""
    lines = stderr_lines("import logging; logging.basicConfig()")

    assert lines[0].startswith("WARNING:eventproc.processor:handler_failed partition_id=0 ")
    assert "LookupError('no such customer" in lines[0]
    assert "Traceback (most recent call last):" in lines
    assert "LookupError: no such customer:" in lines
    assert "RuntimeError: no running event loop" not in lines


@pytest.mark.parametrize(
    "before",
    [
        "import logging; logging.getLogger('eventproc').addHandler(logging.NullHandler())",
        "import logging; logging.getLogger().addHandler(logging.NullHandler())",
        "import logging; logging.lastResort = None",
        "import logging; logging.getLogger('eventproc').setLevel('CRITICAL')",
    ],
)
def test_a_program_with_a_handler_or_level_of_its_own_gets_no_default_lines(before):
    """Any handler of the program replaces the default one, which writes warnings."""
    assert stderr_lines(before) == []


def test_configure_writes_text_and_leaves_the_root_logger_alone():
    """Each event from INFO on; records of other libraries are not written."""
    lines = stderr_lines(
        "import logging\nfrom eventproc.logs import configure\nconfigure('text')\n"
        "assert logging.getLogger().handlers == []\nlogging.getLogger('other').info('hidden')"
    )

    assert "INFO    eventproc.processor: processor_starting fully_qualified_namesp" in lines[0]
    assert lines[1].endswith("INFO    eventproc.processor: processor_started partition_count=1")
    assert "hidden" not in "".join(lines)


def test_configure_writes_json_with_the_traceback_on_the_line():
    """One JSON object for each event."""
    logged = [
        json.loads(line) for line in stderr_lines("import eventproc.logs as l; l.configure('json')")
    ]
    (failed,) = [each for each in logged if each["event"] == "handler_failed"]

    assert (failed["level"], failed["logger"]) == ("warning", "eventproc.processor")
    assert (failed["partition_id"], failed["sequence_number"], failed["attempt"]) == ("0", 0, 1)
    assert "LookupError: no such customer" in failed["exception"]


def test_configure_may_be_called_again(unconfigured):
    """The last call counts, and no event is written twice."""
    before = len(unconfigured.handlers)
    configure("text")
    configure("json", level="error")

    assert len(unconfigured.handlers) == before + 1
    assert unconfigured.level == logging.ERROR


@pytest.mark.parametrize("wrong", [{"line_format": "xml"}, {"level": "loud"}, {"level": 30}])
def test_configure_refuses_an_unknown_format_or_level(wrong):
    """The message lists the valid values."""
    with pytest.raises(ConfigurationError, match=r"give '(text|debug)'"):
        configure(**wrong)


def test_a_record_has_the_event_its_fields_and_the_error(logger, caplog):
    """As attributes, and as text in the message, except those that every line has."""
    error = failure()
    logger.warning("handler_failed", attempt=2, error="two\nlines", skipped=None, exc_info=error)
    (record,) = caplog.records

    assert record.getMessage() == "handler_failed partition_id=3 attempt=2 error=two lines"
    assert (record.event, record.partition_id, record.owner_id) == ("handler_failed", "3", "a")
    assert record.exc_info[1] is error
    assert record.msg == "handler_failed %s"  # The same for each: tools group by it.


def test_a_text_line_has_date_time_level_logger_event_and_fields(logger, caplog):
    """Each once. The date tells lines before midnight from those after it."""
    logger.info("partition_claimed")
    record = caplog.records[0]
    line = TextLines().format(record)

    assert line[23:] == " INFO    eventproc.x: partition_claimed partition_id=3"
    assert abs(datetime.fromisoformat(line[:23]).timestamp() - record.created) < 0.001


def test_a_text_line_shows_extra_fields_of_other_loggers():
    """For example those that a user's handler logs with ``extra=``."""
    record = logging.makeLogRecord({"name": "orders", "levelname": "INFO", "msg": "paid"})
    record.order = 7

    assert TextLines().format(record).endswith("INFO    orders: paid order=7")


def test_a_text_line_is_followed_by_the_traceback(logger, caplog):
    """The last line is the error."""
    logger.warning("handler_failed", exc_info=failure())
    line = TextLines().format(caplog.records[0])

    assert line.splitlines()[-1] == "  ValueError: invalid literal for int() with base 10: 'oops'"


HOSTILE = "\x1b[2J\x1b]0;title\x07\r\u202e\x85"


def test_a_text_line_has_nothing_that_a_terminal_obeys(logger, unconfigured):
    """Fields, messages of other loggers, and error texts are from outside."""
    kept = BufferingHandler(10)
    # Not to pytest: its report in another process may have no surrogate.
    unconfigured.handlers[:], unconfigured.propagate = [kept], False
    logger.warning("handler_failed", error=HOSTILE, exc_info=failure(f"{HOSTILE}\n{FORGED}"))
    other = logging.makeLogRecord({"name": "orders", "msg": f"{HOSTILE}\n{FORGED}"})
    for record in (kept.buffer[0], other):
        line = TextLines().format(record)

        assert line.replace("\n", "").isprintable()
        assert "\\x1b[2J" in line
        assert FORGED in line
        assert FORGED not in line.splitlines()


FORGED = "2026-01-01 00:00:00.000 INFO    eventproc.processor: processor_stopped"


def test_text_for_people_is_printable_as_it_is():
    """Letters of every script, emojis and spaces stay."""
    text = "naïve 1\u00a0000 € 漢字 🙂"

    assert printable(text) == text
    assert printable("a\n\tb\x00", keep="\n") == "a\n\\tb\\x00"


def test_a_json_line_is_one_object(logger, caplog):
    """All fields are beside time, level and event; a traceback stays on the line."""
    logger.warning("partition_claimed", lag=5, exc_info=failure())
    line = JsonLines().format(caplog.records[0])
    logged = json.loads(line)

    assert "\n" not in line
    assert (logged["event"], logged["level"], logged["owner_id"], logged["lag"]) == (
        "partition_claimed",
        "warning",
        "a",
        5,
    )
    assert logged["exception"].endswith("'oops'")


def test_a_field_that_json_cannot_encode_is_logged_as_text(logger, caplog):
    """A field may have any type."""
    logger.info("partition_claimed", error=ValueError("x"))

    assert json.loads(JsonLines().format(caplog.records[0]))["error"] == "x"


def levels(caplog):
    """Return level and event of each record."""
    return [(record.levelname, vars(record)["event"]) for record in caplog.records]


def test_a_condition_is_logged_when_it_begins_and_when_it_ends(logger, caplog):
    """Repetitions are at debug level, and it can begin again."""
    outage = ConditionLogger(logger, "hub_failed", "hub_recovered")

    outage.end()
    for _ in range(2):
        outage.note(error="silence")
        outage.note(error="silence")
        outage.end(failure_count=outage.count)
        outage.end()

    assert levels(caplog) == 2 * [
        ("WARNING", "hub_failed"),
        ("DEBUG", "hub_failed"),
        ("INFO", "hub_recovered"),
    ]
    assert caplog.records[0].error == "silence"
    assert caplog.records[2].failure_count == 2


def test_a_condition_that_is_checked_periodically_is_updated(logger, caplog):
    """A check that finds what the last one found logs nothing at info level or above."""
    outage = ConditionLogger(logger, "hub_failed", "hub_recovered")
    caplog.set_level(logging.INFO, "eventproc")

    for holds in (False, True, True, False, False):
        outage.update(holds=holds, held_count=3)

    assert levels(caplog) == [("WARNING", "hub_failed"), ("INFO", "hub_recovered")]
    assert [record.held_count for record in caplog.records] == [3, 3]


@pytest.mark.parametrize(
    ("are_errors", "expected"),
    [
        ([True, True, False], ["ERROR", "DEBUG", "DEBUG"]),
        ([False, True, False, True], ["WARNING", "ERROR", "DEBUG", "DEBUG"]),
    ],
)
def test_a_condition_that_becomes_an_error_is_logged_once_more(
    logger, caplog, are_errors, expected
):
    """A warning does not hide that an operator has to act from now on."""
    outage = ConditionLogger(logger, "hub_failed", "hub_recovered")

    for is_error in are_errors:
        outage.note(is_error=is_error)

    assert [level for level, _ in levels(caplog)] == expected
