"""Letters of a hub of the emulator, and what that hub has."""

from dataclasses import replace

from eventproc.emulator import EventHubsEmulator
from eventproc.models import ConsumerGroup, DeadLetter, ReceivedEvent
from eventproc.sources.eventhubs import EventHubSource
from tests.integration.dead_letters.places import (
    letter,
)

KEYS = 7
KILLS = 2
HANDLER = """
    import os

    from eventproc import PartitionHandler

    class Note(PartitionHandler):
        async def process_event(self, context, event):
            with open("journal", "a") as journal:
                journal.write(f"{event.replayed_from} {event.partition_key}\\n")
                journal.flush()
                os.fsync(journal.fileno())

    class Booking(Note):
        uses_transactions = True
"""


def letters_of(namespace: str, count: int) -> list[DeadLetter]:
    """Return letters of events of several keys in partition 2 of a hub of this namespace."""
    group = ConsumerGroup(fully_qualified_namespace=namespace, eventhub_name="orders")
    return [keyed(letter(number), group) for number in range(count)]


def keyed(found: DeadLetter, group: ConsumerGroup) -> DeadLetter:
    """Return the letter with a body that names it, and one of ``KEYS`` keys."""
    old = found.event
    event = ReceivedEvent(
        body=b"%d" % old.sequence_number,
        sequence_number=old.sequence_number,
        offset=old.offset,
        enqueued_time=old.enqueued_time,
        partition_key=f"key {old.sequence_number % KEYS}",
        properties={"kind": "order"},
    )
    return replace(found, event=event, group=group)


def namespace_of(emulator: EventHubsEmulator) -> str:
    """Return the namespace as the command has it."""
    conn_str = emulator.connection_string_for("orders")
    return EventHubSource.from_connection_string(conn_str).fully_qualified_namespace


def stored(emulator: EventHubsEmulator) -> int:
    """Return how many events the hub ``orders`` has."""
    return sum(len(emulator.events("orders", p)) for p in emulator.partition_ids("orders"))
