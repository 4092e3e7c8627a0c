"""Benchmarks that need neither a server nor a browser run, and return rows."""

import importlib
import json
import sys

import pytest

from benchmarks._run import as_rows, programs


@pytest.mark.parametrize("name", ["capture", "decoding", "delivery", "plan", "scale"])
def test_a_benchmark_prints_rows(name, monkeypatch, capsys):
    """A list of flat mappings, which the runner parses."""
    monkeypatch.setattr(sys, "argv", [name, "--quick", "--format", "json"])

    importlib.import_module(f"benchmarks.{name}").main()

    rows = as_rows(capsys.readouterr().out)
    assert rows
    assert all(isinstance(cell, str | int | float | None) for row in rows for cell in row.values())


def test_all_benchmarks_are_found_with_group_first():
    """Not modules that begin with an underscore."""
    found = programs([])

    assert found[0] == "group"
    assert {"loop", "queues", "plan"} <= set(found)
    assert not {"_run", "_fleet"} & set(found)


def test_an_unknown_name_is_refused_and_the_known_ones_are_listed():
    """Before anything is measured."""
    with pytest.raises(SystemExit, match=r"no such benchmark: nothing; there are .*group"):
        programs(["nothing"])


@pytest.mark.parametrize("text", ["", "one 1\ntwo 2", json.dumps({"a": 1}), json.dumps([1])])
def test_output_that_is_not_a_list_of_rows_is_refused(text):
    """A program that prints something else has failed."""
    with pytest.raises(ValueError, match=r".+"):
        as_rows(text)
