"""A pytest plugin for mutants: ends the run at the first failed test and writes down which.

A test that times out does not count as failed: the run continues with the next one.
"""

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest

import eventproc
from tests.mutation.guard import ROOT

VERDICT_VARIABLE: Final = "EVENTPROC_MUTANT_VERDICT"
"""Environment variable: path of the file for the first failed test and those that timed out."""

HANGS_MAX: Final = 2
"""End the run after this many time-outs: in such a mutant most tests hang."""


def pytest_collection_modifyitems() -> None:
    """Check that the mutant's copy is imported, and not the project that it was made from."""
    assert eventproc.__file__.startswith(str(ROOT)), "must run in the mutant's copy"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]"):
    """Write down the first test that fails."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    file = Path(os.environ[VERDICT_VARIABLE])
    result = json.loads(file.read_text()) if file.exists() else {"hangs": []}
    error = call.excinfo.exconly() if call.excinfo is not None else ""
    for place in (
        ROOT,
        Path(sys.prefix),
    ):  # The report is stored; it must not depend on the machine.
        error = error.replace(f"{place}/", "")
    # An event loop may swallow the time-out's exception; then the duration shows it.
    most_s = item.config.getoption("timeout") or float("inf")
    if "Timeout (>" in error or call.duration >= most_s:
        result["hangs"].append(report.nodeid)
        if len(result["hangs"]) >= HANGS_MAX:
            item.session.shouldstop = "too many tests time out"
    elif "killer" not in result:
        result |= {
            "killer": report.nodeid,
            "error": " ".join(error.split())[:200],
            "is_timing": "TimeoutError" in error or report.when != "call",
        }
        item.session.shouldstop = "a test failed"
    file.write_text(json.dumps(result))
