"""A plugin for pytest in a mutant: what failed first, for the judge."""

import os
from pathlib import Path

import pytest

import eventproc
from tests.mutation.guard import ROOT

VERDICT_VARIABLE = "EVENTPROC_MUTANT_VERDICT"
"""Environment variable: the file that tells what failed first."""


def pytest_collection_modifyitems() -> None:
    """Make sure that the mutant is tested, and not the project that it was made from."""
    assert eventproc.__file__.startswith(str(ROOT)), "the mutant itself is tested"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """Write down the first test that fails."""
    outcome = yield
    report = outcome.get_result()
    verdict = Path(os.environ[VERDICT_VARIABLE])
    if report.failed and not verdict.exists():
        verdict.write_text(report.nodeid)
