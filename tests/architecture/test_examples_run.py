"""Every example in the documentation runs; a wrong pattern would leave it out silently."""

import os
import subprocess
import sys


def test_every_page_with_an_example_is_collected(root):
    """pytest collects the Python blocks of the README and of each page below ``docs``."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "README.md", "docs"],
        cwd=root,
        env={**os.environ, "PYTEST_ADDOPTS": ""},  # Its options change the output.
        capture_output=True,
        text=True,
        check=False,
    )
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    with_example = [page for page in pages if "\n```python\n" in page.read_text("utf-8")]
    missed = [
        page.name for page in with_example if f"{page.relative_to(root)}::" not in done.stdout
    ]

    assert missed == []


def test_no_docstring_has_an_example(shipped):
    """It belongs on a page, where it runs."""
    assert [file.name for file in shipped if "\n    >>> " in file.text] == []
