"""All guards, in the order of the report."""

from typing import Final

from tests.mutation.guard import Guard
from tests.mutation.guards import (
    decisions,
    delivery,
    fleet,
    offset_format,
    ownership,
    sessions,
    spark,
    stores,
)

GUARDS_BY_PART: Final[dict[str, list[Guard]]] = {
    "The plan": [*decisions.PLAN, *decisions.BALANCE, *decisions.STANDBY],
    "Who is alive": [*decisions.LEASE, *ownership.PRESENCE, *ownership.CONTEST],
    "Leases": [
        *ownership.LEASES,
        *ownership.TURNS,
        *ownership.PARTING,
        *ownership.BALANCER,
        *sessions.SESSION_LEASES,
        *sessions.SESSION_LOOK,
        *sessions.SESSION_PRESENCE,
        *sessions.SESSIONS,
        *sessions.SESSION_GROUP,
    ],
    "One protocol, and Kafka": [
        *offset_format.NUMBERS,
        *offset_format.ADMISSION,
        *offset_format.TAKING_UP,
        *offset_format.READER,
        *offset_format.FEED,
        *offset_format.POSITION,
    ],
    "Checkpoints": [*delivery.CHECKPOINTER, *delivery.RECORDS, *delivery.CONTEXT],
    "Delivery": [
        *delivery.ENDING,
        *delivery.DELIVERY,
        *delivery.PUMP,
        *delivery.RECEPTION,
        *delivery.BEGINNING,
        *delivery.LANES,
        *delivery.WATERMARK,
        *delivery.CRASHES,
        *delivery.WATCHDOG,
        *delivery.PUMPS,
        *delivery.SESSION,
    ],
    "Stores": [
        *stores.MEMORY,
        *stores.SQLITE,
        *stores.BLOB,
        *stores.BLOB_CLIENT,
        *stores.BLOB_RECORDS,
        *stores.BLOB_CHECKPOINT,
        *stores.BLOB_MEANING,
    ],
    "Spark": [
        *spark.PLANNING,
        *spark.READING,
        *spark.OPTIONS,
        *spark.PLANNER,
        *spark.HUB,
        *spark.OFFSETS,
        *spark.SINK_RECORDS,
        *spark.SINK_STORE,
        *spark.SINK_PARTITION,
        *fleet.FLEET,
        *fleet.FLEET_BOARD,
        *fleet.FLEET_MEMBER,
    ],
}
GUARDS: Final = [guard for guards in GUARDS_BY_PART.values() for guard in guards]
