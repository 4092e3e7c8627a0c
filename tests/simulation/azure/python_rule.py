"""The genuine rule of Azure's Python processor, with our clock and random numbers.

The rule is a method that reads ``time.time()`` and draws from the
``random`` module. Its code is run here with two other globals of these names, so that it runs on
virtual time and the same seed gives the same draw; nothing of the package is changed.
"""

from collections.abc import Mapping
from random import Random
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from azure.eventhub import LoadBalancingStrategy
from azure.eventhub._eventprocessor.ownership_manager import OwnershipManager
from tests.simulation.azure.rule import Decision, ObservedGroup, Rule

NOW_S: Final = 1e9
"""Any value does: the rule looks at ages only."""


def python_rule(*, is_greedy: bool) -> Rule:
    """Return the rule under one of its two strategies.

    The SDK's method returns every record to write, the processor's own live ones included. The
    decision leaves those out: an owner renews its records in every cycle anyway.
    """
    strategy = LoadBalancingStrategy.GREEDY if is_greedy else LoadBalancingStrategy.BALANCED

    def rule(seen: ObservedGroup, rng: Random) -> Decision:
        method = OwnershipManager._balance_ownership
        decide = FunctionType(
            method.__code__,
            {**method.__globals__, "random": rng, "time": SimpleNamespace(time=lambda: NOW_S)},
        )
        manager = SimpleNamespace(
            owner_id=seen.owner_id,
            ownership_timeout=seen.expiration_s,
            load_balancing_strategy=strategy,
            fully_qualified_namespace="",
            eventhub_name="",
            consumer_group="",
        )
        written = decide(manager, _as_azure_has_them(seen), list(seen.partition_ids))
        mine = set(seen.mine)
        return Decision(
            claims=tuple(x["partition_id"] for x in written if x["partition_id"] not in mine)
        )

    return rule


def _as_azure_has_them(seen: ObservedGroup) -> list[Mapping[str, Any]]:
    return [
        {
            "partition_id": record.partition_id,
            "owner_id": record.owner_id or "",
            "last_modified_time": NOW_S - record.age_s,
        }
        for record in seen.records
    ]
