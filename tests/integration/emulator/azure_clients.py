"""Azure's own clients, in a form in which a test can wait for what they receive."""

import threading

from azure.eventhub import EventHubConsumerClient, EventHubProducerClient

TIMEOUT_S = 30


def producer_of(emulator, hub, **options):
    """Return Azure's producer."""
    return EventHubProducerClient.from_connection_string(
        emulator.connection_string, eventhub_name=hub, **options
    )


def consumer_of(emulator, hub, group="$Default", **options):
    """Return Azure's consumer, with a short socket time-out."""
    return EventHubConsumerClient.from_connection_string(
        emulator.connection_string,
        group,
        eventhub_name=hub,
        socket_timeout=0.02,
        **options,
    )


class Reading:
    """Azure's consumer in a thread, with the events and errors that it received."""

    def __init__(self, client, enough=None, **options):
        self.client = client
        self.events = []
        self.errors = []
        self.closed: list[tuple[str, str]] = []
        self._enough = enough
        self.has_enough = threading.Event()
        self.has_error = threading.Event()
        self._thread = threading.Thread(
            target=client.receive,
            args=(self._on_event,),
            kwargs={
                "on_error": self._on_error,
                "on_partition_close": lambda context, reason: self.closed.append(
                    (context.partition_id, reason.name)
                ),
                "starting_position": "-1",
                **options,
            },
        )

    def _on_event(self, context, event):
        if event is not None:
            self.events.append((context, event))
            if self._enough is not None and len(self.events) >= self._enough:
                self.has_enough.set()

    def _on_error(self, context, error):
        del context
        self.errors.append(error)
        self.has_error.set()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.client.close()
        self._thread.join(TIMEOUT_S)

    @property
    def bodies(self):
        """Return the received bodies of each partition, in order."""
        found: dict[str, list[str]] = {}
        for context, event in self.events:
            found.setdefault(context.partition_id, []).append(event.body_as_str())
        return found
