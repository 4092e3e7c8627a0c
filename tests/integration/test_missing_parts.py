"""The tests after ``make venv`` alone, without the parts that only ``make test`` fetches."""

import os
import subprocess
import sys

WITHOUT_PARTS = """\
import sys
from pathlib import Path
from eventproc.testing import _azurite as azurite
sys.modules["pyspark"] = None
azurite._MAIN = Path("absent")
"""
OF_SPARK = "tests/unit/spark_integration/_sink/test_task.py"
OF_AZURITE = "tests/integration/test_azurite.py::test_a_stopped_azurite_refuses_connections"
OF_NOTHING = "tests/unit/eventproc/_base/test_extras.py"


def run_pytest(root, directory, *tests, **environment):
    (directory / "without_parts.py").write_text(WITHOUT_PARTS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "without_parts", *tests],
        cwd=root,
        env=kept
        | {"PYTHONPATH": str(directory), "PATH": str(directory), "EVENTPROC_TEST_SKIPS": ""}
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_needs_a_missing_part_is_skipped(pytestconfig, tmp_path):
    """Other tests run, and the summary says how to get what is missing."""
    tests = ("tests/spark/test_batch.py", OF_SPARK, OF_AZURITE, OF_NOTHING)
    ran = run_pytest(pytestconfig.rootpath, tmp_path, *tests)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Spark is not installed: `make spark`" in ran.stdout
    assert "Azurite is not installed. In a checkout of eventproc: `make azurite`" in ran.stdout
    assert " passed" in ran.stdout


def test_a_build_server_skips_nothing(pytestconfig, tmp_path):
    """With ``EVENTPROC_TEST_SKIPS=fail``, a part that is missing is a failure."""
    tests = (OF_SPARK, OF_AZURITE, "--continue-on-collection-errors")
    ran = run_pytest(pytestconfig.rootpath, tmp_path, *tests, EVENTPROC_TEST_SKIPS="fail")

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "2 errors in" in ran.stdout
