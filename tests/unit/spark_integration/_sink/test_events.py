"""Events over Arrow columns."""

from collections import Counter

from spark_integration._columns import SCHEMA, to_record_batches
from spark_integration._sink import events as events_module
from spark_integration._sink.events import events_of
from tests.unit.spark_integration._sink.sink_bench import events


def test_a_column_is_converted_once_for_all_events(monkeypatch):
    """On the first access: a conversion for each event would take the square of their number."""
    conversions: Counter[str] = Counter()

    class Counted(events_module._Columns):
        def _converted(self, name):
            conversions[name] += 1
            return super()._converted(name)

    monkeypatch.setattr(events_module, "_Columns", Counted)
    (batch,) = to_record_batches(SCHEMA, [("0", events(0, 5))])
    made = events_of(batch, range(5))
    assert not conversions
    offsets = [event.offset for event in made for _ in range(2)]

    assert offsets[::2] == [f"o{number}" for number in range(5)]
    assert conversions == {"offset": 1}
