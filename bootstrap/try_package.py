"""Run the README's program with the Python of an environment, until it has printed everything.

Usage: ``python bootstrap/try_package.py build/package/bin/python``. The environment has the wheel;
the program runs in an empty folder.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

EVENTS = 8


def main() -> None:
    """Fail unless the program prints every event and stops on Ctrl+C."""
    python = Path(sys.argv[1]).absolute()
    readme = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    found = re.search(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert found is not None
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [python, "-c", found[1]],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        ) as program,
    ):
        assert program.stdout is not None
        lines = [program.stdout.readline() for _ in range(EVENTS)]
        program.send_signal(signal.SIGINT)
    orders = sorted(line.rpartition(": ")[2].strip() for line in lines)
    assert orders == [f"order {number}" for number in range(EVENTS)], lines
    assert program.returncode == 0, program.returncode
    sys.stdout.write("".join(lines))


if __name__ == "__main__":
    main()
