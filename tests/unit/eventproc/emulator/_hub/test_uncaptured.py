"""Events that wait to be written to a Capture file."""

from eventproc.emulator._amqp.message import StoredEvent
from eventproc.emulator._hub.hub import Uncaptured


def test_events_that_could_not_be_written_come_before_later_ones():
    """A file with them in another order would look as if events were lost."""
    first, second = (StoredEvent(number, number, 0, b"xyz", 1) for number in (1, 2))
    waiting = Uncaptured([first])
    taken = waiting.take()
    waiting.add([second])
    waiting.put_back(taken)

    assert (waiting.byte_count, list(waiting.take())) == (6, [first, second])
    assert (waiting.byte_count, list(waiting.take())) == (0, [])
