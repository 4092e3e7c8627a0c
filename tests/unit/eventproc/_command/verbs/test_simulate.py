"""The verb ``simulate``, with real arguments."""

import json
import sys

import pytest

from eventproc._command import main

SMALL = ["simulate", "--partitions", "8", "--processors", "2", "--hours", "0.1", "--seed", "7"]


def test_json_output_has_a_row_for_each_event(capsys):
    """The start first, and the totals."""
    code = main([*SMALL, "--event", "join:1", "--format", "json"])
    report = json.loads(capsys.readouterr().out)

    assert code == 0
    assert [row["event"] for row in report["events"]] == ["start:2", "join:1"]
    assert report["totals"]["lists_per_hour"] > 0


def test_text_output_is_a_table(capsys):
    """With names of figures in words."""
    code = main(SMALL)

    assert code == 0
    assert "seconds to balance" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "spread"),
    [
        ([], 0),
        (["--placement", "Weighted", "--weight", "3", "--weight", "1"], 4),
        *(
            (["--placement", placement], None)
            for placement in ("Ordinal", "Ring", "Ring:literal=true", "Published:Even")
        ),
    ],
)
def test_a_group_with_any_placement_is_simulated(arguments, spread, capsys):
    """Until every partition has the owner that it plans."""
    code = main([*SMALL, "--event", "join:1", *arguments, "--format", "json"])
    start, join = json.loads(capsys.readouterr().out)["events"]

    assert code == 0
    assert join["seconds_to_balance"] is not None
    assert spread in {None, start["spread_final"]}


def test_a_crash_is_simulated_without_log_events(caplog):
    """A killed process does nothing more, not even when the simulation ends."""
    code = main([*SMALL, "--event", "crash:1", "--event", "restart:1"])

    assert code == 0
    assert not caplog.records


def test_a_plot_without_its_extra_is_an_error(capsys, monkeypatch, tmp_path):
    """The message has the command that installs it; nothing is simulated."""
    monkeypatch.delitem(sys.modules, "eventproc._simulation.draw.plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    code = main([*SMALL, "--plot", str(tmp_path / "plot.png")])

    assert code == 2
    assert "pip install 'eventproc[plot]'" in capsys.readouterr().err


def priced(capsys, *arguments):
    """Return the price of a month."""
    assert main([*SMALL, *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["totals"]["dollars_per_month"]


def test_a_table_costs_at_most_a_twentieth_of_blobs_and_postgres_nothing_by_request(capsys):
    """The same operations, at the list price of each store."""
    blob, tables = priced(capsys, "--store", "blob"), priced(capsys, "--store", "tables")

    assert 0 < tables <= blob / 20
    assert priced(capsys, "--store", "postgres") == 0
    assert priced(capsys) == blob


def test_the_price_of_checkpoints_is_named(capsys):
    """By the number of partitions and the store: the dollars above do not include it."""
    assert main([*SMALL, "--partitions", "32"]) == 0
    assert "up to $84.10 a month more: $2.63 for each" in capsys.readouterr().out
    assert main([*SMALL, "--store", "postgres"]) == 0
    assert "add that of its server" in capsys.readouterr().out


def test_a_weight_without_its_placement_is_refused(capsys):
    """It would have no effect."""
    assert main([*SMALL, "--weight", "2"]) == 2
    assert "give both" in capsys.readouterr().err
    assert main([*SMALL, "--weight", "2", "--placement", "Weighted"]) == 0


@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1", "1e300"])
def test_a_simulated_time_that_cannot_be_is_refused(capsys, value):
    """The message has the value as a number of hours, and what is possible."""
    assert main([*SMALL, "--hours", value]) == 2
    error = capsys.readouterr().err
    assert f"--hours is {float(value)}: give " in error
    assert "more than 0 and 876000 or less" in error


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e300"])
def test_a_latency_that_cannot_be_is_refused(capsys, value):
    """In milliseconds, as it was given."""
    assert main([*SMALL, "--latency-ms", value]) == 2
    error = capsys.readouterr().err
    assert f"--latency-ms is {float(value)}: give " in error
    assert "0 to 3600000" in error


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--weight", "nan", "--weight is (nan,)"),
        ("--event", "fly:1", "fly:1"),
        ("--store", "sqlite", "'--store': 'sqlite' is not one of"),
        ("--event", "crash:0", "the count must be 1 or more"),
    ],
)
def test_a_wrong_value_is_refused_in_the_words_of_the_command(capsys, option, value, message):
    """Without words of Python."""
    assert main([*SMALL, option, value]) == 2
    assert message in capsys.readouterr().err


def test_a_given_price_goes_before_that_of_the_store(capsys):
    """For another region, or another redundancy."""
    given = ("--price-per-10k-writes", "0.05", "--price-per-10k-lists", "0.05")

    assert priced(capsys, "--store", "tables", *given) == priced(capsys)


def test_costs_follow_from_the_given_prices(capsys):
    """Here only listings cost anything."""
    arguments = [
        *SMALL,
        "--price-per-10k-writes",
        "0",
        "--price-per-10k-lists",
        "10",
        "--format",
        "json",
    ]
    main(arguments)
    totals = json.loads(capsys.readouterr().out)["totals"]

    assert totals["dollars_per_month"] == pytest.approx(
        totals["lists_per_hour"] * 730 * 10 / 10_000, rel=0.01
    )


SCALED = ["--autoscale", "--load", "8", "--process-rate", "10", "--checkpoint-interval", "10s"]


def test_a_scaler_decides_the_number_of_processors(capsys, tmp_path):
    """The table says when and why, JSON has the same figures, and the picture has a panel more."""
    plot = tmp_path / "scaled.png"
    code = main([*SMALL, *SCALED, "--event", "load:30@2m", "--plot", str(plot)])
    shown = capsys.readouterr().out
    json_code = main([*SMALL, *SCALED, "--event", "load:30@2m", "--format", "json"])
    report = json.loads(capsys.readouterr().out)

    assert (code, json_code) == (0, 0)
    assert "seconds to drain" in shown
    assert "behind, and the backlog does not drain in time" in shown
    assert [row["event"] for row in report["scaling"]["events"]] == ["start:2", "load:30"]
    assert report["scaling"]["votes"][-1]["replicas"] > 2
    assert report["totals"]["moves"] >= 8
    assert plot.stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--autoscale"], "--autoscale needs --load and --process-rate"),
        (["--load", "3"], "only with --autoscale"),
        (["--max", "3"], "only with --autoscale"),
        ([*SCALED, "--process-rate", "0"], "--process-rate is 0.0"),
    ],
)
def test_options_of_the_scaler_that_do_not_fit_are_refused(arguments, words, capsys):
    """Before anything is simulated."""
    code = main([*SMALL, *arguments])

    assert code == 2
    assert words in capsys.readouterr().err
