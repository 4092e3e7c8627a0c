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
    """Return the last line of standard error, and the exit code."""
    program = WITHOUT.format(packages=packages, action=action)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return done.stderr.splitlines()[-1], done.returncode


@pytest.mark.parametrize(
    ("package", "module", "extra"),
    [
        ("azure", "checkpointstores.blob", "blob"),
        ("aiohttp", "checkpointstores.blob", "blob"),
        ("azure", "eventproc.dead_letters.blob", "blob"),
        ("azure", "eventproc.sources.eventhubs", "eventhubs"),
        ("azure", "spark_integration._options", "eventhubs"),
        ("confluent_kafka", "eventproc.sources.kafka", "kafka"),
        ("matplotlib", "eventproc._simulation.draw.plot", "plot"),
    ],
)
def test_importing_a_module_of_a_missing_extra_says_how_to_install_it(package, module, extra):
    """``except ImportError`` catches the error."""
    caught, code = run_without(
        [package],
        f"try: import {module}\nexcept ImportError as e: sys.exit(f'{{e.name}} {{e!r}} {{e}}')",
    )

    assert caught.startswith(package)
    assert " MissingExtraError(" in caught
    assert " this needs the extra " in caught
    assert caught.endswith(f"pip install 'eventproc[{extra}]'")
    assert code == 1


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
    """Each verb explains itself, and the hub of one vendor is read without those of the others."""
    missing = [package for package in OPTIONAL if package not in needed]
    action = (
        "from eventproc._command import main\n"
        f"codes = {{main([verb, '--help']) for verb in {VERBS!r}}}\n"
        "import eventproc.dead_letters, eventproc.admin, eventproc._runtime.processors\n"
        f"for name in {needed!r}: __import__({{'azure': 'eventproc.sources.eventhubs',"
        " 'confluent_kafka': 'eventproc.sources.kafka'}.get(name, 'eventproc.sources'))\n"
        "sys.exit(f'codes {codes}')"
    )
    last, _ = run_without(missing, action)

    assert last == "codes {0}"


def test_the_command_reports_a_missing_extra_in_one_line():
    """With exit code 2, and the module that is missing."""
    action = (
        "from eventproc._command import main\n"
        "key = 'AccountName=a;AccountKey=a2V5'\n"
        "sys.exit(main(['status', '--eventhub', 'h', '--store', 'blob:abc', "
        "'--namespace', 'n', '--without-hub', '--storage-connection-string', key]))"
    )
    last, code = run_without(["azure"], action)

    assert last.startswith("eventproc: this needs the extra 'blob' (there is no module 'azure")
    assert last.endswith("pip install 'eventproc[blob]'")
    assert code == 2
