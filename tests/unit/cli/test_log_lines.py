"""Log events as lines, for people and for programs."""

import json
import logging

from eventproc.cli.log_lines import JsonLines, TextLines


def record(message="partition_claimed", **fields):
    """Make a record as the library logs it."""
    made = logging.makeLogRecord({"name": "eventproc.x", "levelname": "INFO", "msg": message})
    vars(made).update(fields)
    return made


def failure():
    """Return what ``sys.exc_info`` says of an error."""
    try:
        int("oops")
    except ValueError as error:
        return (ValueError, error, error.__traceback__)


def test_a_line_for_people_has_the_fact_and_its_fields():
    """What is the same on every line is left out."""
    line = TextLines().format(record(owner_id="a", consumer_group="$Default", partition_id="3"))

    assert line.endswith("INFO    partition_claimed partition_id=3")


def test_an_exception_follows_a_line_for_people():
    """With its traceback."""
    line = TextLines().format(record(exc_info=failure()))

    assert line.splitlines()[-1] == "ValueError: invalid literal for int() with base 10: 'oops'"


def test_a_line_for_programs_is_one_object():
    """Every field beside time, level and event; a traceback stays on the line."""
    line = JsonLines().format(record(owner_id="a", lag=5, exc_info=failure()))
    told = json.loads(line)

    assert "\n" not in line
    assert (told["event"], told["level"], told["owner_id"], told["lag"]) == (
        "partition_claimed",
        "info",
        "a",
        5,
    )
    assert told["exception"].endswith("'oops'")


def test_what_json_cannot_say_is_said_as_text():
    """A field may be anything."""
    assert json.loads(JsonLines().format(record(error=ValueError("x"))))["error"] == "x"
