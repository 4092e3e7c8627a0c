"""A plugin for pytest in a mutant: it ends the run at the first test that fails, and tells.

A test that takes too long is none that fails: the run goes on without it.
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
"""Environment variable: the file that tells what failed first, and what hung."""

HANGS_MAX: Final = 2
"""A mutant in which everything hangs takes a time-out for each test: so many are enough."""


def pytest_collection_modifyitems() -> None:
    """Make sure that the mutant is tested, and not the project that it was made from."""
    assert eventproc.__file__.startswith(str(ROOT)), "the mutant itself is tested"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]"):
    """Write down the first test that fails."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    file = Path(os.environ[VERDICT_VARIABLE])
    told = json.loads(file.read_text()) if file.exists() else {"hangs": []}
    error = call.excinfo.exconly() if call.excinfo is not None else ""
    for place in (ROOT, Path(sys.prefix)):  # It is kept, and read on other machines.
        error = error.replace(f"{place}/", "")
    # An event loop may swallow what interrupts it, and the test go on, or fail for another reason.
    most_s = item.config.getoption("timeout") or float("inf")
    if "Timeout (>" in error or call.duration >= most_s:
        told["hangs"].append(report.nodeid)
        if len(told["hangs"]) >= HANGS_MAX:
            item.session.shouldstop = "one test after another hangs"
    elif "killer" not in told:
        told |= {
            "killer": report.nodeid,
            "error": " ".join(error.split())[:200],
            "is_timing": "TimeoutError" in error or report.when != "call",
        }
        item.session.shouldstop = "one is enough"
    file.write_text(json.dumps(told))
