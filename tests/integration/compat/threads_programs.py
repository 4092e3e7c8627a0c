"""Programs on the client for threads. Each returns what it observed."""

import threading
import time
from collections import defaultdict
from typing import Any

from tests.integration.compat.sides import OwnStore, Place

WAIT_MAX_S = 60.0


class Receiving:
    """A call of ``receive`` in a thread, with every callback."""

    def __init__(self, client: Any, *, fails_at: int = -1) -> None:
        self.client = client
        self.by_partition: dict[str, list[Any]] = defaultdict(list)
        self.errors: list[str] = []
        self.caller: int | None = None
        self.outcome: list[Any] = []
        self._fails_at = fails_at
        self._thread = threading.Thread(target=self._run, daemon=True)

    def numbers(self, partition_id: str = "0") -> list[int]:
        return [each for each in self.by_partition[partition_id] if isinstance(each, int)]

    def on_event(self, context: Any, event: Any) -> None:
        assert threading.get_ident() == self.caller
        seen = self.by_partition[context.partition_id]
        if event is None:
            seen.append("idle")
            return
        seen.append(event.sequence_number)
        if event.sequence_number == self._fails_at:
            self._fails_at = -1
            raise RuntimeError("once")
        self.handle(context, event)

    def handle(self, context: Any, event: Any) -> None:
        """Handle an event."""

    def on_event_batch(self, context: Any, events: list[Any]) -> None:
        assert threading.get_ident() == self.caller
        self.by_partition[context.partition_id].append([e.sequence_number for e in events])

    def on_partition_initialize(self, context: Any) -> None:
        self.by_partition[context.partition_id].append("initialize")

    def on_partition_close(self, context: Any, reason: Any) -> None:
        assert threading.get_ident() == self.caller
        self.by_partition[context.partition_id].append(f"close {reason.name}")

    def on_error(self, context: Any, error: Exception) -> None:
        if context is None:
            self.errors.append(f"{type(error).__name__}: {error}")
        else:
            self.by_partition[context.partition_id].append(f"error {type(error).__name__}")

    def begin(self, *, batch: bool = False, **options: Any) -> "Receiving":
        names = ("on_partition_initialize", "on_partition_close", "on_error")
        self._arguments = {name: getattr(self, name) for name in names}
        self._arguments |= {"starting_position": "-1"} | options
        self._is_batch = batch
        self._thread.start()
        return self

    def _run(self) -> None:
        self.caller = threading.get_ident()
        method = self.client.receive_batch if self._is_batch else self.client.receive
        on_events = self.on_event_batch if self._is_batch else self.on_event
        try:
            self.outcome.append(method(on_events, **self._arguments))
        except Exception as error:  # noqa: BLE001 - is observed
            self.outcome.append(repr(error))

    def until(self, is_done: Any) -> None:
        """Wait until what was observed satisfies a condition, or it does not in time."""
        until_s = time.monotonic() + WAIT_MAX_S
        while not is_done() and time.monotonic() < until_s:
            time.sleep(0.02)

    def end(self) -> dict[str, list[Any]]:
        """Close the client in another thread, as most programs do."""
        self.client.close()
        self._thread.join(WAIT_MAX_S)
        return {p: seen for p, seen in sorted(self.by_partition.items()) if seen}


def recv_in_a_thread(place: Place) -> Any:
    """All partitions from the beginning; every callback in the thread that called."""
    place.publish(["a", "b", "c"], *"01")
    receiving = Receiving(place.threads_client()).begin()
    receiving.until(lambda: all(len(receiving.numbers(p)) == 3 for p in "01"))
    return receiving.end(), receiving.outcome


def idle_events_in_a_thread(place: Place) -> Any:
    """``on_event`` is called without an event each ``max_wait_time``."""
    place.publish(["a"])
    receiving = Receiving(place.threads_client()).begin(max_wait_time=0.8, partition_id="0")
    receiving.until(
        lambda: receiving.by_partition["0"][-2:] == ["idle"] * 2 and receiving.numbers()
    )
    seen = receiving.end()["0"]
    return seen[0], seen.count(0), seen.count("idle") > 1, seen[-1]


def batches_collect(place: Place) -> Any:
    """A batch waits until it is full, or for ``max_wait_time``."""
    receiving = Receiving(place.threads_client())
    receiving.begin(batch=True, max_batch_size=3, max_wait_time=8.0, partition_id="0")
    receiving.until(lambda: [] in receiving.by_partition["0"])
    place.publish(["a"])
    place.publish(["b", "c", "d", "e"])
    receiving.until(lambda: any(batch[-1:] == [4] for batch in receiving.by_partition["0"]))
    return [each for each in receiving.end()["0"] if each not in ([], "initialize")]


def error_in_a_callback(place: Place) -> Any:
    """After ``on_error`` the partition closes, and begins again after its checkpoint."""
    place.publish(list("abcd"))

    class Checkpointing(Receiving):
        def handle(self, context: Any, event: Any) -> None:
            if event.sequence_number == 0:
                context.update_checkpoint(event)

    client = place.threads_client(checkpoint_store=OwnStore())
    receiving = Checkpointing(client, fails_at=2).begin()
    receiving.until(lambda: 3 in receiving.numbers())
    return receiving.end()["0"]


def own_store_in_a_thread(place: Place) -> Any:
    """A store with the four methods; the second run begins after the last checkpoint."""
    place.publish(list("abc"))
    store = OwnStore()

    class Checkpointing(Receiving):
        def handle(self, context: Any, event: Any) -> None:
            context.update_checkpoint(mark="m")

    found: list[Any] = []
    for last in (2, 3):
        receiving = Checkpointing(place.threads_client(checkpoint_store=store)).begin()
        receiving.until(lambda: store.checkpoints.get("0", {}).get("sequence_number") == last)
        receiving.end()
        found += [receiving.numbers(), [o["owner_id"] for o in store.owned.values()]]
        place.publish(["d"])
    return found, store.options


def callbacks_one_at_a_time(place: Place) -> Any:
    """No two callbacks of a client run at once."""
    place.publish(list("ab"), *"0123")
    running: list[int] = []

    class Slow(Receiving):
        def handle(self, context: Any, event: Any) -> None:
            running.append(1)
            assert len(running) == 1
            time.sleep(0.1)
            running.pop()

    receiving = Slow(place.threads_client()).begin()
    receiving.until(lambda: all(len(receiving.numbers(p)) == 2 for p in "0123"))
    time.sleep(0.2)
    return receiving.end()


def closed_in_a_callback(place: Place) -> Any:
    """``close`` may be called in a callback, after which no event is handled."""
    place.publish(["a", "b"])

    class Closing(Receiving):
        def handle(self, context: Any, event: Any) -> None:
            self.client.close()

    receiving = Closing(place.threads_client()).begin(partition_id="0", unknown=1)
    receiving.until(lambda: receiving.outcome)
    return receiving.end(), receiving.outcome


PROGRAMS = [
    recv_in_a_thread,
    idle_events_in_a_thread,
    batches_collect,
    error_in_a_callback,
    own_store_in_a_thread,
    callbacks_one_at_a_time,
    closed_in_a_callback,
]
