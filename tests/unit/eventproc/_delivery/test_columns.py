"""Handlers of columns that can never work are refused at the start with the remedy."""

import sys
from typing import Any

import pytest

from eventproc import BlockingPartitionHandler, ConfigurationError, PartitionHandler
from eventproc.errors import MissingExtraError
from tests.unit.eventproc._delivery.test_handlers import processor


class ColumnsInThread(BlockingPartitionHandler):
    async def process_columns(self, context, columns):  # type: ignore[override]
        pass


class PlainColumns(PartitionHandler):
    def process_columns(self, context, columns):
        pass


class UnknownColumn(PartitionHandler):
    columns: Any = ("body", "time")

    async def process_columns(self, context, columns):
        pass


class OneColumn(UnknownColumn):
    columns = "body"


class NoColumn(UnknownColumn):
    columns = ()


class ColumnsOfEvents(PartitionHandler):
    columns = ("body",)

    async def process_event(self, context, event):
        pass


BAD: list[tuple[type, str]] = [
    (ColumnsInThread, r"ColumnsInThread.process_columns is `async def`"),
    (PlainColumns, r"PlainColumns.process_columns is `def`"),
    (UnknownColumn, r"UnknownColumn.columns: there is no column 'time': choose of body, partition"),
    (OneColumn, r"OneColumn.columns is 'body': give the names of columns, such as \(\"body\""),
    (NoColumn, r"NoColumn.columns is \(\): give the names"),
    (ColumnsOfEvents, r"ColumnsOfEvents.columns has no effect, because .* no process_columns"),
]


@pytest.mark.parametrize(
    ("handler", "message"), BAD, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_handler_of_columns_that_can_never_work_is_refused(handler, message):
    """When a processor is built."""
    with pytest.raises(ConfigurationError, match=message):
        processor(handler)


class Both(PartitionHandler):
    async def process_events(self, context, events):
        pass

    async def process_columns(self, context, columns):
        pass


class Columns(PartitionHandler):
    async def process_columns(self, context, columns):
        pass


def test_columns_are_refused_with_key_lanes():
    """A batch has events of many keys. A handler of events may define them too, for Spark."""
    processor(Columns)
    with pytest.raises(ConfigurationError, match="key_concurrency is 4: Columns takes columns"):
        processor(Columns, key_concurrency=4)
    processor(Both, key_concurrency=4)


def test_without_the_extra_a_handler_of_columns_is_refused_with_the_command(monkeypatch):
    """Before anything is claimed."""
    for name in [name for name in sys.modules if name.startswith("eventproc.columns")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'eventproc\[columns\]'"):
        processor(Columns)
    processor(Both)
