"""Programs on the client for an event loop. Each returns what it observed."""

import asyncio
import pickle
import time
from collections import defaultdict
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.eventhub import EventData, EventHubSharedKeyCredential, parse_connection_string
from azure.eventhub.amqp import AmqpAnnotatedMessage

from tests.integration.compat.sides import AioOwnStore, Place

WAIT_MAX_S = 60.0


class Receiving:
    """A call of ``receive`` with every callback, which notes what each partition sees."""

    def __init__(self, client: Any, *, fails_at: dict[int, int] | None = None) -> None:
        self.client = client
        self.by_partition: dict[str, list[Any]] = defaultdict(list)
        self.errors: list[str] = []
        self.contexts: dict[str, Any] = {}
        self.stored: list[int] = []
        self._fails_at = fails_at or {}
        self._task: asyncio.Task[None] | None = None

    def numbers(self, partition_id: str = "0") -> list[int]:
        return [each for each in self.by_partition[partition_id] if isinstance(each, int)]

    async def on_event(self, context: Any, event: Any) -> None:
        seen = self.by_partition[context.partition_id]
        if event is None:
            seen.append("idle")
            return
        number = event.sequence_number
        seen.append(number)
        if self._fails_at.get(number, 0) > 0:
            self._fails_at[number] -= 1
            raise RuntimeError(f"at {number}")
        await self.handle(context, event)

    async def handle(self, context: Any, event: Any) -> None:
        """Handle an event."""

    async def on_event_batch(self, context: Any, events: list[Any]) -> None:
        self.by_partition[context.partition_id].append([e.sequence_number for e in events])
        if events:
            await self.handle(context, events[-1])

    async def on_partition_initialize(self, context: Any) -> None:
        self.contexts[context.partition_id] = context
        self.by_partition[context.partition_id].append("initialize")

    async def on_partition_close(self, context: Any, reason: Any) -> None:
        self.by_partition[context.partition_id].append(f"close {reason.name}")

    async def on_error(self, context: Any, error: Exception) -> None:
        if context is None:
            self.errors.append(f"{type(error).__name__}: {error}")
        else:
            self.by_partition[context.partition_id].append(f"error {type(error).__name__}")

    def begin(self, *, batch: bool = False, **options: Any) -> "Receiving":
        names = ("on_partition_initialize", "on_partition_close", "on_error")
        callbacks = {name: getattr(self, name) for name in names}
        method = self.client.receive_batch if batch else self.client.receive
        on_events = self.on_event_batch if batch else self.on_event
        given = {"starting_position": "-1"} | callbacks | options
        self._task = asyncio.create_task(method(on_events, **given))
        return self

    async def until(self, is_done: Any) -> None:
        """Wait until what was observed satisfies a condition, or it does not in time."""
        until_s = time.monotonic() + WAIT_MAX_S
        while not is_done() and time.monotonic() < until_s:  # noqa: ASYNC110 - any condition
            await asyncio.sleep(0.02)

    async def end(self) -> dict[str, list[Any]]:
        """Close the client as most programs do, and return what the partitions saw."""
        await self.client.close()
        assert self._task is not None
        self._task.cancel()  # Azure's call sleeps for the rest of its interval
        with suppress(asyncio.CancelledError):
            await self._task
        return {p: seen for p, seen in sorted(self.by_partition.items()) if seen}


class CheckpointingReceiving(Receiving):
    """Stores a checkpoint after events that satisfy a condition."""

    when: Any = staticmethod(lambda _: True)

    async def handle(self, context: Any, event: Any) -> None:
        if self.when(event.sequence_number):
            await context.update_checkpoint(event)
            self.stored.append(event.sequence_number)


async def recv(place: Place) -> Any:
    """All partitions from the beginning, without a store."""
    for partition_id in ("0", "1"):
        place.publish(["a", "b", "c"], partition_id)
    receiving = Receiving(place.aio_client()).begin()
    await receiving.until(lambda: all(len(receiving.numbers(p)) == 3 for p in "01"))
    return await receiving.end()


async def checkpoint_each_event_and_restart(place: Place) -> Any:
    """The second run begins after the first one's last checkpoint."""
    place.publish(list("abcd"))
    found = []
    for _ in range(2):
        client = place.aio_client(checkpoint_store=place.blob_store())
        receiving = CheckpointingReceiving(client).begin()
        await receiving.until(lambda: 3 in receiving.stored or 5 in receiving.stored)
        found.append((await receiving.end(), place.blobs("checkpoint"), place.blobs("ownership")))
        place.publish(["e", "f"])
    return found


async def checkpoint_by_event_count(place: Place) -> Any:
    """What is above the last checkpoint comes again."""
    place.publish(list("abcde"))
    found: list[Any] = []
    for _ in range(2):
        receiving = CheckpointingReceiving(place.aio_client(checkpoint_store=place.blob_store()))
        receiving.when = lambda number: number % 3 == 2
        receiving.begin()
        await receiving.until(lambda: 4 in receiving.numbers())
        found += [(await receiving.end())["0"], place.blobs("checkpoint")]
    return found


async def buffer_and_checkpoint_at_close(place: Place) -> Any:
    """A program with a buffer stores at the close; nothing is lost and nothing comes again."""
    place.publish(list("abcde"))

    class Buffering(Receiving):
        async def on_partition_close(self, context: Any, reason: Any) -> None:
            await context.update_checkpoint()

    found: list[Any] = []
    for wanted in (4, 5):
        receiving = Buffering(place.aio_client(checkpoint_store=place.blob_store())).begin()
        await receiving.until(lambda: wanted in receiving.numbers())
        await receiving.end()
        found += [receiving.numbers(), place.blobs("checkpoint")]
        place.publish(["f"])
    return found


async def batch_with_checkpoint(place: Place) -> Any:
    """``update_checkpoint`` without an event means the last one of the batch."""
    place.publish(list("abcd"))

    class Batches(Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            await context.update_checkpoint()
            self.stored.append(event.sequence_number)

    receiving = Batches(place.aio_client(checkpoint_store=place.blob_store()))
    receiving.begin(batch=True, max_batch_size=3)
    await receiving.until(lambda: 3 in receiving.stored)
    return (await receiving.end())["0"], place.blobs("checkpoint")


async def batches_do_not_collect(place: Place) -> Any:
    """A batch is what has come, however long it may wait; an empty one comes without events."""
    place.publish(["a"])
    waiting = Receiving(place.aio_client())
    waiting.begin(batch=True, max_batch_size=3, max_wait_time=60.0)
    await waiting.until(lambda: [0] in waiting.by_partition["0"])
    first = (await waiting.end())["0"]
    place.publish(list("bcde"))
    receiving = Receiving(place.aio_client())
    receiving.begin(batch=True, max_batch_size=3, max_wait_time=0.5)
    await receiving.until(
        lambda: (
            [4] in [each[-1:] for each in receiving.by_partition["0"]]
            and receiving.by_partition["0"][-1] == []
        )
    )
    batches = [each for each in (await receiving.end())["0"] if isinstance(each, list)]
    return (
        first,
        [] in batches,
        max(map(len, batches)) <= 3,
        [number for batch in batches for number in batch],
    )


async def idle_events(place: Place) -> Any:
    """``on_event`` is called without an event each ``max_wait_time``."""
    place.publish(["a"])
    receiving = Receiving(place.aio_client()).begin(max_wait_time=0.8)
    await receiving.until(
        lambda: receiving.by_partition["0"][-2:] == ["idle"] * 2 and receiving.numbers()
    )
    seen = (await receiving.end())["0"]
    return seen[0], seen.count(0), seen.count("idle") > 1, seen[-1]


async def starting_positions(place: Place) -> Any:
    """Each form of a position, inclusive or not; a partition that is not named begins first."""
    place.publish(list("abcde"), *"0123")
    forms: list[tuple[Any, Any]] = [
        ({"0": 1, "1": 1}, {"1": True}),
        ({"0": "@latest", "1": "-1"}, False),
        (2, True),
    ]
    client = place.aio_client()
    first = Receiving(client).begin()
    offsets: dict[int, str] = {}
    times: dict[int, datetime] = {}

    async def handle(context: Any, event: Any) -> None:
        if context.partition_id == "0":
            offsets[event.sequence_number] = event.offset
            times[event.sequence_number] = event.enqueued_time

    first.handle = handle  # type: ignore[method-assign]
    await first.until(lambda: len(offsets) == 5)
    await first.end()
    forms.append(({"0": offsets[2], "1": times[0] - timedelta(seconds=1)}, {"0": True}))
    forms.append(({"0": datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)}, False))
    found = []
    for position, inclusive in forms:
        receiving = Receiving(place.aio_client())
        receiving.begin(starting_position=position, starting_position_inclusive=inclusive)
        await receiving.until(lambda: 4 in receiving.numbers("3"))
        await asyncio.sleep(0.3)
        found.append(
            {
                p: n
                for p, s in (await receiving.end()).items()
                if (n := [each for each in s if isinstance(each, int)])
            }
        )
    return found


async def default_position(place: Place) -> Any:
    """Without a position only new events are received."""
    place.publish(["a"])
    receiving = Receiving(place.aio_client()).begin(starting_position=None, partition_id="0")
    await receiving.until(lambda: "initialize" in receiving.by_partition["0"])
    for _ in range(50):  # A client of Azure's opens its link only after this call.
        place.publish(["b"])
        await asyncio.sleep(0.5)
        if receiving.numbers():
            break
    await receiving.end()
    return bool(receiving.numbers()), 0 in receiving.numbers()


async def last_enqueued(place: Place) -> Any:
    """``last_enqueued_event_properties`` of the context, with and without tracking."""
    place.publish(list("abc"))
    found: list[Any] = []
    for tracks in (True, False):
        receiving = Receiving(place.aio_client())
        receiving.begin(track_last_enqueued_event_properties=tracks)
        await receiving.until(lambda: 2 in receiving.numbers())
        properties = receiving.contexts["0"].last_enqueued_event_properties
        await receiving.end()
        found.append(
            properties
            and {
                name: value
                if isinstance(value, int | str)
                else (type(value), value.tzinfo is not None)
                for name, value in properties.items()
            }
        )
    return found


async def error_in_callback(place: Place) -> Any:
    """After ``on_error`` the partition closes, and begins again after its checkpoint."""
    place.publish(list("abcd"))
    client = place.aio_client(checkpoint_store=place.blob_store())
    receiving = CheckpointingReceiving(client, fails_at={2: 2})
    receiving.when = lambda number: number == 0
    receiving.begin()
    await receiving.until(lambda: 3 in receiving.numbers())
    return (await receiving.end())["0"]


async def error_without_checkpoint_from_latest(place: Place) -> Any:
    """Which events come again after an error, if the call began at the end."""
    place.publish(["a"])
    receiving = Receiving(place.aio_client(), fails_at={2: 1}).begin(starting_position="@latest")
    await receiving.until(lambda: "initialize" in receiving.by_partition["0"])
    await asyncio.sleep(1.0)
    place.publish(["b", "c", "d"])
    await receiving.until(lambda: receiving.by_partition["0"].count("initialize") == 2)
    await asyncio.sleep(1.0)
    place.publish(["e"])
    await receiving.until(lambda: 4 in receiving.numbers())
    await receiving.end()
    return receiving.numbers()


async def error_in_other_callbacks(place: Place) -> Any:
    """Errors of ``on_partition_initialize`` and ``_close`` end nothing."""
    place.publish(["a"])

    class Failing(Receiving):
        async def on_partition_initialize(self, context: Any) -> None:
            await super().on_partition_initialize(context)
            raise RuntimeError("initialize")

        async def on_partition_close(self, context: Any, reason: Any) -> None:
            await super().on_partition_close(context, reason)
            raise RuntimeError("close")

    receiving = Failing(place.aio_client()).begin()
    await receiving.until(receiving.numbers)
    return (await receiving.end())["0"]


async def one_partition(place: Place) -> Any:
    """One partition: its checkpoints are used, and no ownership is written."""
    place.publish(list("ab"), *"01")
    found: list[Any] = []
    for _ in range(2):
        client = place.aio_client(checkpoint_store=place.blob_store())
        receiving = CheckpointingReceiving(client).begin(partition_id="1")
        await receiving.until(lambda: receiving.stored[-1:] in ([1], [2]))
        found += [await receiving.end(), place.blobs("checkpoint"), place.blobs("ownership")]
        place.publish(["c"], "1")
    return found


async def unknown_partition(place: Place) -> Any:
    """A partition that the hub does not have is reported to ``on_error`` without a context."""
    receiving = Receiving(place.aio_client()).begin(partition_id="99")
    await receiving.until(lambda: receiving.errors)
    await receiving.end()
    return receiving.errors[:1]


async def wrong_hub(place: Place) -> Any:
    """A hub that does not exist is reported to ``on_error`` without a context."""
    client = place.aio.EventHubConsumerClient.from_connection_string(
        place.connection_string.replace(f"EntityPath={place.hub}", "EntityPath=missing"),
        "$Default",
        **place.options,
        retry_total=0,
    )
    receiving = Receiving(client).begin()
    await receiving.until(lambda: receiving.errors)
    await receiving.end()
    return receiving.errors[0].partition(":")[0]


async def two_calls(place: Place) -> Any:
    """A partition is received by one call of a client only."""
    client = place.aio_client()
    first = Receiving(client).begin(partition_id="0")
    await first.until(lambda: "initialize" in first.by_partition["0"])
    found = []
    for partition_id in ("0", None, "1"):
        call = client.receive(first.on_event, partition_id=partition_id)
        try:
            await asyncio.wait_for(call, 0.5)
        except ValueError as error:
            found.append(str(error).strip())
        except TimeoutError:
            found.append("receives")
    await first.end()
    return found


async def cancelled(place: Place) -> Any:
    """A cancelled ``receive`` closes its partitions for a shutdown."""
    place.publish(["a"])
    receiving = Receiving(place.aio_client()).begin()
    await receiving.until(receiving.numbers)
    assert receiving._task is not None
    receiving._task.cancel()
    outcome = await asyncio.gather(receiving._task, return_exceptions=True)
    return type(outcome[0]).__name__, receiving.by_partition["0"]


async def receives_again_after_close(place: Place) -> Any:
    """A closed client can be used again."""
    place.publish(["a"])
    client = place.aio_client()
    found = []
    for _ in range(2):
        receiving = Receiving(client).begin()
        await receiving.until(receiving.numbers)
        await receiving.end()
        found.append(receiving.numbers())
    return found


async def own_store(place: Place) -> Any:
    """A store with the four methods: what it is given, and what is left in it."""
    place.publish(list("abc"))
    store = AioOwnStore()

    class Marking(Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            await context.update_checkpoint(event, mark=f"m{event.sequence_number}")

    receiving = Marking(place.aio_client(checkpoint_store=store)).begin()
    await receiving.until(lambda: store.checkpoints.get("0", {}).get("sequence_number") == 2)
    await receiving.end()
    owned = {p: (o["owner_id"], sorted(o)) for p, o in sorted(store.owned.items())}
    checkpoint = dict(store.checkpoints["0"])
    checkpoint["fully_qualified_namespace"] = "somewhere"
    checkpoint["eventhub_name"] = "hub"
    return owned, checkpoint, store.options


async def own_store_fails(place: Place) -> Any:
    """An error of ``update_checkpoint`` reaches the callback as the store raised it."""
    place.publish(["a"])

    class Failing(AioOwnStore):
        async def update_checkpoint(self, checkpoint: Any, mark: str = "") -> None:
            raise OSError("disk full")

    class Catching(Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            try:
                await context.update_checkpoint(event)
            except OSError as error:
                self.by_partition["0"].append(repr(error))

    receiving = Catching(place.aio_client(checkpoint_store=Failing())).begin()
    await receiving.until(lambda: len(receiving.by_partition["0"]) == 3)
    return (await receiving.end())["0"]


async def context_and_properties(place: Place) -> Any:
    """Attributes of the context, and what the client tells of hub and partitions."""
    place.publish(["a"])
    client = place.aio_client()
    receiving = Receiving(client).begin()
    await receiving.until(receiving.numbers)
    context = receiving.contexts["0"]
    hub = await client.get_eventhub_properties()
    partition = await client.get_partition_properties("0")
    found = (
        context.fully_qualified_namespace.startswith("127.0.0.1:"),
        context.eventhub_name == place.hub,
        context.consumer_group,
        context.partition_id,
        isinstance(context, place.aio.PartitionContext),
        sorted(hub),
        await client.get_partition_ids(),
        {name: type(value) for name, value in partition.items()},
    )
    await receiving.end()
    return found


async def event_data(place: Place) -> Any:
    """Everything that a program can read of an event."""
    full = EventData("body \u00e9")
    full.properties = {"text": "v", "number": 1, "flag": True, "raw": b"\x00", "time": 1.5}
    full.content_type, full.correlation_id, full.message_id = "text/plain", "c", "m"
    value = AmqpAnnotatedMessage(value_body={"a": [1, "two"]})
    sequence = AmqpAnnotatedMessage(sequence_body=[[1, 2], ["x"]])
    bodies = [full, EventData(b""), EventData("x" * 300), EventData([b"one", b"two"])]
    place.publish([*bodies, value, sequence, EventData("[1, 2]")])
    found: list[Any] = []

    class Reading(Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            found.append([_read(event, name) for name in _ATTRIBUTES])

    receiving = Reading(place.aio_client()).begin()
    await receiving.until(lambda: 6 in receiving.numbers())
    await receiving.end()
    return found


def _text(event: Any) -> str:
    return str(event.body_as_str())


def _json(event: Any) -> Any:
    return event.body_as_json()


def _bodies(event: Any) -> Any:
    body = event.body
    return list(body) if hasattr(body, "__next__") else body


def _raw(event: Any) -> Any:
    raw = event.raw_amqp_message
    annotations = {k for k in raw.annotations if k != b"x-opt-enqueued-time"}
    return raw.body_type, sorted(annotations), raw.application_properties, raw.header and 1


def _system(event: Any) -> Any:
    return {k: v for k, v in event.system_properties.items() if k != b"x-opt-enqueued-time"}


def _text_of(event: Any) -> Any:
    cut = [str(event).partition("enqueued_time")[0], repr(event).partition("enqueued_time")[0]]
    return [*cut, event.enqueued_time.tzinfo is not None, isinstance(event, EventData)]


def _copied(event: Any) -> Any:
    copied = pickle.loads(pickle.dumps(event))
    return copied.body_type, copied.properties, copied.sequence_number, type(copied).__name__


_ATTRIBUTES: list[Any] = [
    *("properties", "body_type", "sequence_number", "offset", "partition_key"),
    *("content_type", "correlation_id", "message_id"),
    *(
        _text,
        _json,
        _bodies,
        _raw,
        _system,
        _text_of,
        _copied,
        lambda event: event.body_as_str("ascii"),
    ),
]


def _read(event: Any, name: Any) -> Any:
    try:
        return name(event) if callable(name) else getattr(event, name)
    except Exception as error:  # noqa: BLE001 - what it raises is compared, too
        return type(error).__name__


async def ways_to_construct(place: Place) -> Any:
    """Keys and signatures in each form that Azure's client takes."""
    place.publish(["a"])
    parts: Any = parse_connection_string(place.connection_string)
    namespace = parts.fully_qualified_namespace
    key: Any = (parts.shared_access_key_name, parts.shared_access_key)
    token: Any = EventHubSharedKeyCredential(*key).get_token(f"amqp://{namespace}/{place.hub}")
    signature = token.token if isinstance(token.token, str) else token.token.decode()
    aio_key = place.aio.EventHubSharedKeyCredential(*key)
    found = []
    for credential in (aio_key, AzureNamedKeyCredential(*key), AzureSasCredential(signature)):
        client = place.aio.EventHubConsumerClient(
            namespace, place.hub, "$Default", credential, use_tls=False, **place.options
        )
        receiving = Receiving(client).begin()
        await receiving.until(receiving.numbers)
        await receiving.end()
        found.append(receiving.numbers())
    by_text = place.aio.EventHubConsumerClient.from_connection_string(
        f"Endpoint=sb://{namespace}/;SharedAccessSignature={signature};"
        f"EntityPath={place.hub};UseDevelopmentEmulator=true",
        "$Default",
        **place.options,
    )
    receiving = Receiving(by_text).begin()
    await receiving.until(receiving.numbers)
    await receiving.end()
    return [*found, receiving.numbers()]


async def refused_arguments(place: Place) -> Any:
    """Arguments that Azure's client refuses are refused here, with the same class."""
    found = []
    for options in (
        {"load_balancing_strategy": "best"},
        {"eventhub_name": ""},
        {"user_agent": "x" * 600},
    ):
        try:
            if "eventhub_name" in options:
                place.aio.EventHubConsumerClient("host", "", "$Default", object())
            else:
                client = place.aio_client(**options)
                await client.get_partition_ids()
        except ValueError:
            found.append("ValueError")
        else:
            found.append("taken")
    client = place.aio_client()
    for call in (
        lambda: client.receive_batch(None, max_batch_size=0),
        lambda: client.receive(None, unknown=1),
    ):
        try:
            await call()
        except (ValueError, TypeError) as error:
            found.append(type(error).__name__)
    return found


async def checkpoint_going_back(place: Place) -> Any:
    """A checkpoint below the stored one."""
    place.publish(list("abc"))
    kept = []

    class Backwards(Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            kept.append(event)
            if event.sequence_number == 2:
                await context.update_checkpoint(event)
                await context.update_checkpoint(kept[0])
                self.by_partition["0"].append("stored")

    receiving = Backwards(place.aio_client(checkpoint_store=place.blob_store())).begin()
    await receiving.until(lambda: "stored" in receiving.by_partition["0"])
    await receiving.end()
    return place.blobs("checkpoint")["0"]["sequencenumber"]


async def checkpoint_after_the_close(place: Place) -> Any:
    """A checkpoint by a process that does not own the partition any more."""
    place.publish(list("ab"))
    client = place.aio_client(checkpoint_store=place.blob_store())
    receiving = Receiving(client).begin()
    await receiving.until(lambda: 1 in receiving.numbers())
    await receiving.end()
    await receiving.contexts["0"].update_checkpoint()
    return sorted(place.blobs("checkpoint"))


async def inclusive_after_a_checkpoint(place: Place) -> Any:
    """Whether ``starting_position_inclusive`` delivers the checkpoint's event again."""
    place.publish(list("ab"))
    found = []
    for wanted in (1, 2):
        receiving = CheckpointingReceiving(place.aio_client(checkpoint_store=place.blob_store()))
        receiving.begin(starting_position_inclusive=True)
        await receiving.until(lambda: wanted in receiving.stored)
        await receiving.end()
        found.append(receiving.numbers())
        place.publish(["c"])
    return found


async def callbacks_overlap(place: Place) -> Any:
    """Partitions are handled at once, and each in order."""
    place.publish(list("ab"), *"01")
    running: list[str] = []
    most = []

    class Slow(Receiving):
        async def handle(self, context: Any, event: Any) -> None:
            running.append(context.partition_id)
            most.append((len(running), len(running) == len(set(running))))
            await asyncio.sleep(0.4)
            running.remove(context.partition_id)

    receiving = Slow(place.aio_client()).begin()
    await receiving.until(lambda: len(receiving.numbers("0") + receiving.numbers("1")) == 4)
    await asyncio.sleep(0.5)
    await receiving.end()
    return max(count for count, _ in most), all(is_one for _, is_one in most)


PROGRAMS = [
    recv,
    checkpoint_each_event_and_restart,
    checkpoint_by_event_count,
    buffer_and_checkpoint_at_close,
    batch_with_checkpoint,
    batches_do_not_collect,
    idle_events,
    starting_positions,
    default_position,
    last_enqueued,
    error_in_callback,
    error_without_checkpoint_from_latest,
    error_in_other_callbacks,
    one_partition,
    unknown_partition,
    wrong_hub,
    two_calls,
    cancelled,
    receives_again_after_close,
    own_store,
    own_store_fails,
    context_and_properties,
    event_data,
    ways_to_construct,
    refused_arguments,
    checkpoint_going_back,
    checkpoint_after_the_close,
    inclusive_after_a_checkpoint,
    callbacks_overlap,
]
