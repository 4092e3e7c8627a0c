"""Azure's SDKs by name: each a rule and its client's profile.

Beside the rule the SDKs differ in which records a cycle renews, how soon the next cycle follows,
and how a processor finds the start position. The interval and the expiration are not part of a
profile: all processors of a simulated group have the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from tests.simulation.azure import rules
from tests.simulation.azure.processor import CheckpointReading, ClientProfile, Renewal
from tests.simulation.azure.python_rule import python_rule


def _azure_python(*, is_greedy: bool) -> ClientProfile:
    return ClientProfile(
        rule=python_rule(is_greedy=is_greedy),
        jitter=(1.0, 1.2),
        reading=CheckpointReading.LIST_FOR_NEWS,
        is_trusting_silence=True,
    )


_DOTNET: Final = ClientProfile(rule=rules.dotnet, renewal=Renewal.STALE, is_asking_for_growth=True)
_JAVA: Final = ClientProfile(
    rule=rules.java,
    renewal=Renewal.SERVED,
    reading=CheckpointReading.LIST_FOR_EACH,
)
_JAVASCRIPT: Final = ClientProfile(
    rule=rules.javascript_balanced,
    renewal=Renewal.SERVED,
    reading=CheckpointReading.LIST_FOR_EACH,
    is_asking_for_growth=True,
    is_claiming_blindly=True,
)
_GO: Final = ClientProfile(
    rule=rules.go_balanced,
    jitter=(0.8, 1.3),
    reading=CheckpointReading.LIST_ALWAYS,
)

SYSTEMS: Final[Mapping[str, ClientProfile]] = {
    "azure-python-greedy": _azure_python(is_greedy=True),
    "azure-python-balanced": _azure_python(is_greedy=False),
    "azure-dotnet-greedy": replace(_DOTNET, again_after=timedelta(milliseconds=15)),
    "azure-dotnet-balanced": _DOTNET,
    "azure-java-greedy": replace(_JAVA, again_after=timedelta(0)),
    "azure-java-balanced": _JAVA,
    "azure-javascript-greedy": replace(_JAVASCRIPT, rule=rules.javascript_greedy),
    "azure-javascript-balanced": _JAVASCRIPT,
    "azure-go-greedy": replace(_GO, rule=rules.go_greedy),
    "azure-go-balanced": _GO,
}
