"""The systems that can be compared with ours, by name: each a rule and its client's profile.

Beside the rule the SDKs differ in which records a cycle renews, how soon the next cycle follows,
and how a processor finds the start position. The interval and the expiration are not part of a
profile: a comparison gives every system the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from eventproc.simulation.other_systems import azure_rules, document_rules
from eventproc.simulation.other_systems.external import CheckpointReading, ClientProfile, Renewal


def _azure_python(*, is_greedy: bool) -> ClientProfile:
    from eventproc.simulation.other_systems.azure_python_rule import python_rule  # noqa: PLC0415 - an extra

    return ClientProfile(
        rule=python_rule(is_greedy=is_greedy),
        jitter=(1.0, 1.2),
        reading=CheckpointReading.LIST_FOR_NEWS,
        is_trusting_silence=True,
    )


_DOTNET: Final = ClientProfile(
    rule=azure_rules.dotnet, renewal=Renewal.STALE, is_asking_for_growth=True
)
_JAVA: Final = ClientProfile(
    rule=azure_rules.java,
    renewal=Renewal.SERVED,
    reading=CheckpointReading.LIST_FOR_EACH,
)
_JAVASCRIPT: Final = ClientProfile(
    rule=azure_rules.javascript_balanced,
    renewal=Renewal.SERVED,
    reading=CheckpointReading.LIST_FOR_EACH,
    is_asking_for_growth=True,
    is_claiming_blindly=True,
)
_GO: Final = ClientProfile(
    rule=azure_rules.go_balanced,
    jitter=(0.8, 1.3),
    reading=CheckpointReading.LIST_ALWAYS,
)

SYSTEMS: Final[Mapping[str, Callable[[], ClientProfile]]] = MappingProxyType(
    {
        "azure-python-greedy": lambda: _azure_python(is_greedy=True),
        "azure-python-balanced": lambda: _azure_python(is_greedy=False),
        "azure-dotnet-greedy": lambda: replace(_DOTNET, again_after=timedelta(milliseconds=15)),
        "azure-dotnet-balanced": lambda: _DOTNET,
        "azure-java-greedy": lambda: replace(_JAVA, again_after=timedelta(0)),
        "azure-java-balanced": lambda: _JAVA,
        "azure-javascript-greedy": lambda: replace(_JAVASCRIPT, rule=azure_rules.javascript_greedy),
        "azure-javascript-balanced": lambda: _JAVASCRIPT,
        "azure-go-greedy": lambda: replace(_GO, rule=azure_rules.go_greedy),
        "azure-go-balanced": lambda: _GO,
        "event-processor-load-balancing": lambda: ClientProfile(
            rule=document_rules.event_processor_load_balancing, is_asking_for_growth=True
        ),
        "hashring-leases": lambda: ClientProfile(rule=document_rules.hashring_leases),
        "kafka-rebalancer": lambda: ClientProfile(
            rule=document_rules.kafka_rebalancer, is_asking_for_growth=True
        ),
        "parallel-processing-partitions": lambda: ClientProfile(
            rule=document_rules.parallel_processing_partitions
        ),
        "statefulset-partition-queues": lambda: ClientProfile(
            rule=document_rules.statefulset_partition_queues
        ),
    }
)
"""Makes the profile of each system; Azure's Python ones need the extra ``eventhubs``."""
