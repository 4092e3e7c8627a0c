"""A missing package raises an error with the command that installs it."""

import importlib
import subprocess
import sys

import pytest

from eventproc._base.extras import needing
from eventproc.errors import ConfigurationError


def test_a_missing_package_is_named_with_its_extra():
    """The message says what to type."""
    with (
        pytest.raises(
            ConfigurationError, match=r"'blob' .*is_missing.*install 'eventproc\[blob\]'"
        ),
        needing("blob"),
    ):
        importlib.import_module("package_that_is_missing")


def test_a_missing_module_of_eventproc_raises_module_not_found_error():
    """No extra would install it."""
    with pytest.raises(ModuleNotFoundError), needing("blob"):
        importlib.import_module("eventproc.a_module_that_is_not_there")


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
{action}
"""
"""A program on a machine that lacks a package."""


def run_without(packages, action):
    """Return the lines of standard error, and the exit code."""
    program = WITHOUT.format(packages=packages, action=action)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return done.stderr.splitlines(), done.returncode


@pytest.mark.parametrize(
    "extra_by_module",
    [
        {
            "checkpointstores.blob": ("azure", "blob"),
            "eventproc.dead_letters.blob": ("azure", "blob"),
            "eventproc.sources.eventhubs": ("azure", "eventhubs"),
            "spark_integration._options": ("azure", "eventhubs"),
            "eventproc.sources.kafka": ("confluent_kafka", "kafka"),
            "eventproc._simulation.draw.plot": ("matplotlib", "plot"),
        },
        {"checkpointstores.blob": ("aiohttp", "blob")},
    ],
)
def test_importing_a_module_of_a_missing_extra_says_how_to_install_it(extra_by_module):
    """``except ImportError`` catches the error."""
    lines, _ = run_without(
        {package for package, _ in extra_by_module.values()},
        f"for module in {[*extra_by_module]}:\n"
        "    try: __import__(module)\n"
        "    except ImportError as e: print(f'{e.name} {e!r} {e}', file=sys.stderr)",
    )

    for caught, (package, extra) in zip(lines, extra_by_module.values(), strict=True):
        assert caught.startswith(package)
        assert " MissingExtraError(" in caught
        assert " this needs the extra " in caught
        assert caught.endswith(f"pip install 'eventproc[{extra}]'")


OPTIONAL = (
    *("aio_pika", "aiohttp", "azure", "confluent_kafka", "grpc", "kubernetes", "matplotlib"),
    *("numpy", "pandas", "prometheus_client", "psycopg", "pyarrow", "pyspark"),
)
"""Packages that the command itself does not need: each belongs to an extra besides ``cli``."""

VERBS = (
    *("run", "hold", "status", "dashboard", "pause", "scale", "emulator", "simulate", "demo"),
    *("checkpoints", "dead-letters", "store"),
)


@pytest.mark.parametrize("needed", [(), ("azure", "aiohttp"), ("confluent_kafka",), ("aio_pika",)])
def test_the_command_needs_only_the_packages_of_what_is_used(needed):
    """The hub of one vendor is read without those of the others; none is needed for the help."""
    missing = [package for package in OPTIONAL if package not in needed]
    action = (
        "from eventproc._command import main\n"
        f"codes = {{main([verb, '--help']) for verb in {() if needed else VERBS!r}}}\n"
        "import eventproc.dead_letters, eventproc.admin, eventproc._runtime.processors\n"
        f"for name in {needed!r}: __import__({{'azure': 'eventproc.sources.eventhubs',"
        " 'confluent_kafka': 'eventproc.sources.kafka'}.get(name, 'eventproc.sources'))\n"
        "sys.exit(f'codes {codes}')"
    )
    lines, _ = run_without(missing, action)

    assert lines[-1] == ("codes set()" if needed else "codes {0}")


def test_the_command_reports_a_missing_extra_in_one_line():
    """With exit code 2, and the module that is missing."""
    action = (
        "from eventproc._command import main\n"
        "key = 'AccountName=a;AccountKey=a2V5'\n"
        "sys.exit(main(['status', '--eventhub', 'h', '--store', 'blob:abc', "
        "'--namespace', 'n', '--without-hub', '--storage-connection-string', key]))"
    )
    (*_, last), code = run_without(["azure"], action)

    assert last.startswith("eventproc: this needs the extra 'blob' (there is no module 'azure")
    assert last.endswith("pip install 'eventproc[blob]'")
    assert code == 2
