"""All guards, in the order of the report."""

from typing import Final

from tests.mutation.guard import Guard
from tests.mutation.guards import decisions, delivery, fleet, numbering, ownership, spark, stores

GUARDS_BY_PART: Final[dict[str, list[Guard]]] = {
    "The plan": [*decisions.PLAN, *decisions.BALANCE, *decisions.RESERVE],
    "Who is alive": [*decisions.LEASE, *ownership.PRESENCE, *ownership.CONTEST],
    "Leases": [
        *ownership.LEASES,
        *ownership.PARTING,
        *ownership.BALANCER,
        *ownership.SESSIONS,
        *ownership.SESSION_GROUP,
    ],
    "One protocol, and Kafka": [
        *numbering.NUMBERS,
        *numbering.ADMISSION,
        *numbering.TAKING_UP,
        *numbering.READER,
        *numbering.FEED,
        *numbering.POSITION,
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
        *stores.BLOB_DOOR,
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
