"""All guards, in the order of the report."""

from typing import Final

from tests.mutation.guard import Guard
from tests.mutation.guards import (
    cycle,
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
    "The plan": [*decisions.PLAN, *decisions.BALANCE, *decisions.STANDBY, *cycle.GROUP],
    "The cycle": [*cycle.MEMORY, *cycle.CYCLE, *sessions.SESSION_MEMORY],
    "Members and their liveness": [
        *decisions.LEASE,
        *decisions.LIVENESS,
        *cycle.STATUS,
        *cycle.RIVALS,
        *ownership.MEMBERSHIP,
        *ownership.RUN,
        *sessions.COMPATIBILITY,
    ],
    "Leases": [
        *ownership.LEASES,
        *ownership.LEASE,
        *ownership.TURNS,
        *ownership.LEAVING,
        *ownership.STOP,
        *ownership.BALANCER,
        *sessions.SESSION_LEASES,
        *sessions.SESSION_BALANCER,
        *sessions.SESSION_MEMBERSHIP,
        *sessions.SESSION_LEASE_RULES,
        *sessions.SESSION_CYCLE,
    ],
    "Offset formats and Kafka": [
        *offset_format.OFFSET_FORMATS,
        *offset_format.COMPATIBILITY,
        *offset_format.START,
        *offset_format.KAFKA_READER,
        *offset_format.KAFKA_FEED,
        *offset_format.KAFKA_POSITION,
    ],
    "Checkpoints": [*delivery.CHECKPOINTER, *delivery.UPDATES, *delivery.PROGRESS],
    "Delivery": [
        *delivery.STOP_SCOPE,
        *delivery.HANDLER_CALLS,
        *delivery.PUMP,
        *delivery.PARTITION_READER,
        *delivery.START,
        *delivery.LANES,
        *delivery.CRASH_GUARD,
        *delivery.STALL_WATCHDOG,
        *delivery.PUMPS,
        *delivery.RUN,
    ],
    "Stores": [
        *stores.MEMORY,
        *stores.SQLITE,
        *stores.BLOB,
        *stores.BLOB_CLIENT,
        *stores.BLOB_LISTING,
        *stores.BLOB_RECORDS,
        *stores.BLOB_CHECKPOINT,
        *stores.BLOB_ERRORS,
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
        *fleet.FLEET_REGISTRY,
        *fleet.FLEET_PROCESSES,
    ],
}
GUARDS: Final = [guard for guards in GUARDS_BY_PART.values() for guard in guards]
