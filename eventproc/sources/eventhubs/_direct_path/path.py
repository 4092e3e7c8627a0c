# ruff: noqa: SLF001 - this module uses private names of Azure's client
"""The direct receive path: Azure's client opens the link, and this package reads from it.

Properties of a hub and its partitions are requested on one connection. The client's own method
sleeps eight times 50 ms, and connects for each request.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, cast

from eventproc.models import EventPosition, PartitionProperties
from eventproc.sources._amqp.fields import to_time
from eventproc.sources.eventhubs._client import Client
from eventproc.sources.eventhubs._direct_path import azure_internals
from eventproc.sources.eventhubs._direct_path.azure_internals import AmqpClient
from eventproc.sources.eventhubs._direct_path.receiver import EventHubReceiver
from eventproc.sources.eventhubs._errors import as_text, error_for, translated
from eventproc.sources.eventhubs._event import HubAnswer, to_hub_answer
from eventproc.sources.eventhubs._options import PREFETCH, PREFETCH_MAX, EventHubOptions


async def ask_hub(client: Client) -> HubAnswer:
    """Request the ids of the hub's partitions, and when it was created."""
    what = f"asking event hub {client.eventhub_name!r} for its partitions"
    (answer,) = await _ask(client, what, b"com.microsoft:eventhub", {})
    with translated(what):
        return to_hub_answer(answer)


async def ask_partitions(
    client: Client, partition_ids: Sequence[str]
) -> Sequence[PartitionProperties]:
    """Request the properties of some partitions, all on one connection."""
    named = ", ".join(repr(partition_id) for partition_id in partition_ids)
    what = f"asking event hub {client.eventhub_name!r} for its partition {named}"
    questions = [{"partition": partition_id} for partition_id in partition_ids]
    answers = await _ask(client, what, b"com.microsoft:partition", *questions)
    with translated(what):
        return tuple(map(_properties, partition_ids, answers))


def _properties(partition_id: str, answer: dict[bytes, Any]) -> PartitionProperties:
    last = int(answer[b"last_enqueued_sequence_number"])
    return PartitionProperties(
        partition_id=partition_id,
        beginning_sequence_number=int(answer[b"begin_sequence_number"]),
        last_enqueued_sequence_number=last,
        last_enqueued_offset=as_text(answer[b"last_enqueued_offset"]),
        last_enqueued_time=to_time(answer[b"last_enqueued_time_utc"]) if last >= 0 else None,
        is_empty=bool(answer[b"is_partition_empty"]),
    )


class DirectPath:
    """The operations of a source through ``azure_internals``."""

    needs_own_client: ClassVar = False

    def __init__(self, options: EventHubOptions) -> None:
        """Use these options for each receiver."""
        self._options = options

    ask_hub = staticmethod(ask_hub)
    ask_partitions = staticmethod(ask_partitions)

    async def open_receiver(
        self, client: Client, group: str, partition_id: str, position: EventPosition
    ) -> EventHubReceiver:
        """Open a link and start to read ahead."""
        options = self._options
        link = await azure_internals.PartitionLink.open(
            client,
            group,
            partition_id,
            position,
            owner_level=options.owner_level if options.is_exclusive else None,
            tracks_last_enqueued=options.tracks_last_enqueued,
        )
        return EventHubReceiver(
            link,
            room=options.prefetch or PREFETCH,
            room_for_columns=options.prefetch or PREFETCH_MAX,
            room_bytes=options.prefetch_bytes,
        )

    async def check_readable(self, client: Client, group: str, partition_id: str) -> None:
        """Raise if the service refuses to let the group read. No other receiver is displaced.

        The service sends no events, because the link has no credit.
        """
        link = await azure_internals.PartitionLink.open(
            client, group, partition_id, EventPosition.latest(), owner_level=None
        )
        await link.close()


_FIRST_STATUS_OF_REFUSAL: Final = 400


async def _ask(
    client: Client, what: str, kind: bytes, *questions: dict[str, str]
) -> list[dict[bytes, Any]]:
    """Send management requests of one kind on a connection of their own; return the answers."""
    amqp: Any = client._amqp_transport
    with translated(what):
        auth = await client._create_auth_async()
        handler = amqp.create_mgmt_client(client._address, mgmt_auth=auth, config=client._config)
    amqp_client = AmqpClient(what, handler)
    await amqp_client.open()
    answers = []
    try:
        with translated(what):
            token = await amqp.get_updated_token_async(auth)
            for details in questions:
                question = {"name": client.eventhub_name, "security_token": token} | details
                status, text, answer = await amqp.mgmt_client_request_async(
                    handler,
                    amqp.build_message(application_properties=question),
                    operation=b"READ",
                    operation_type=kind,
                    status_code_field=b"status-code",
                    description_fields=b"status-description",
                )
                if int(status) >= _FIRST_STATUS_OF_REFUSAL:
                    # The client looks for the text under another name.
                    said = text or answer.application_properties.get(b"status-description")
                    reason = f"{as_text(said)} (status {status})".strip()
                    raise error_for(what, reason, status=int(status))
                answers.append(cast("dict[bytes, Any]", answer.value))
    finally:
        await amqp_client.close()
    return answers
