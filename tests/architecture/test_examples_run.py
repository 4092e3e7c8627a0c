"""Every example in the documentation is collected as a test, because a wrong pattern fails
silently."""

import os
import subprocess
import sys

import pytest


@pytest.fixture(name="collected", scope="module")
def _collected(root):
    """Return what pytest finds outside the tests."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    places = ["README.md", "docs", "eventproc", "checkpointstores", "spark_integration"]
    done = subprocess.run(
        [*command, *places],
        cwd=root,
        env={**os.environ, "PYTEST_ADDOPTS": ""},  # Its options change the output.
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_every_page_with_an_example_is_collected(collected, root):
    """pytest collects the Python blocks of the README and of each page below ``docs``."""
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    with_example = [page for page in pages if "\n```python\n" in page.read_text("utf-8")]
    missed = [page.name for page in with_example if f"{page.relative_to(root)}::" not in collected]

    assert missed == []


def test_every_docstring_with_an_example_is_collected(collected, shipped):
    """pytest collects the prompts in each docstring."""
    with_example = [file.name for file in shipped if "\n    >>> " in file.text]
    missed = [name for name in with_example if f"{name}::" not in collected]

    assert missed == []
