"""The verb ``simulate``, as it is typed."""

import json

from eventproc.cli import main

SMALL = ["simulate", "--partitions", "8", "--processors", "2", "--hours", "0.1", "--seed", "7"]


def test_a_program_gets_json(capsys):
    """One row for the start and one for each event, and the totals."""
    code = main([*SMALL, "--event", "join:1", "--format", "json"])
    report = json.loads(capsys.readouterr().out)

    assert code == 0
    assert [row["event"] for row in report["events"]] == ["start:2", "join:1"]
    assert report["totals"]["lists_per_hour"] > 0


def test_a_person_gets_a_table(capsys):
    """The figures have names that can be read."""
    code = main(SMALL)

    assert code == 0
    assert "seconds to balance" in capsys.readouterr().out


def test_a_wrong_event_is_named(capsys):
    """The command ends with a line on standard error."""
    code = main([*SMALL, "--event", "fly:1"])

    assert code == 2
    assert "fly:1" in capsys.readouterr().err
