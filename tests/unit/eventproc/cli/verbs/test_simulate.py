"""The verb ``simulate``, as it is typed."""

import json
import sys

import pytest

from eventproc.cli import main
from eventproc.simulation import SYSTEMS

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


def test_other_systems_are_compared(capsys, tmp_path):
    """A line for each, ours first; and a picture, if one is wanted."""
    plot = tmp_path / "all.png"
    code = main([*SMALL, "--event", "join:1", "--compare", "--format", "json", "--plot", str(plot)])
    systems = json.loads(capsys.readouterr().out)["systems"]

    assert code == 0
    assert [system["system"] for system in systems] == ["eventproc", *SYSTEMS]
    assert all(system["totals"]["moves"] >= 8 for system in systems)
    assert plot.stat().st_size > 0


def test_a_person_compares_in_a_table(capsys):
    """One line for each system."""
    code = main([*SMALL[:-4], "--hours", "0.02", "--compare"])
    output = capsys.readouterr().out

    assert code == 0
    assert all(name in output for name in ["eventproc", *SYSTEMS])


def test_a_plot_needs_its_package(capsys, monkeypatch, tmp_path):
    """The message has the command that installs it; nothing was simulated."""
    monkeypatch.delitem(sys.modules, "eventproc.simulation.draw.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    code = main([*SMALL, "--plot", str(tmp_path / "plot.png")])

    assert code == 2
    assert "pip install 'eventproc[plot]'" in capsys.readouterr().err


def test_a_fleet_pays_by_the_list(capsys):
    """The price of an operation is the user's to say."""
    free = [
        *SMALL,
        "--price-per-10k-writes",
        "0",
        "--price-per-10k-lists",
        "10",
        "--format",
        "json",
    ]
    main(free)
    totals = json.loads(capsys.readouterr().out)["totals"]

    assert totals["dollars_per_month"] == pytest.approx(
        totals["lists_per_hour"] * 730 * 10 / 10_000, rel=0.01
    )
