"""A plugin for pytest in a mutant: seeds in their order, and what failed first, for the judge."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import eventproc
from tests.mutation.guard import ROOT

VERDICT_VARIABLE = "EVENTPROC_MUTANT_VERDICT"
"""Environment variable: the file that tells what failed first."""

LAST = 10**9


def _seed_of(item: pytest.Item) -> int:
    """Which seed a test runs with; those that run with none come last."""
    parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return int(parameters.get("seed", LAST))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let every test meet a seed before any meets the next one; only where there are seeds."""
    assert eventproc.__file__.startswith(str(ROOT)), "the mutant itself is tested"
    if any(_seed_of(item) != LAST for item in items):
        items.sort(key=_seed_of)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """Write down the first test that fails."""
    outcome = yield
    report = outcome.get_result()
    verdict = Path(os.environ[VERDICT_VARIABLE])
    if report.failed and not verdict.exists():
        seed = _seed_of(item)
        verdict.write_text(
            json.dumps({"killer": item.nodeid, "seed": None if seed == LAST else seed})
        )
