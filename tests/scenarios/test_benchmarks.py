"""Benchmarks that need neither a server nor a browser run, and return rows."""

import importlib
import sys

import pytest

from benchmarks._run import as_rows


@pytest.mark.parametrize("name", ["capture", "decoding", "delivery", "plan", "scale"])
def test_a_benchmark_prints_rows(name, monkeypatch, capsys):
    """A list of flat mappings, which the runner parses."""
    monkeypatch.setattr(sys, "argv", [name, "--quick", "--format", "json"])

    importlib.import_module(f"benchmarks.{name}").main()

    rows = as_rows(capsys.readouterr().out)
    assert rows
    assert all(isinstance(cell, str | int | float | None) for row in rows for cell in row.values())
