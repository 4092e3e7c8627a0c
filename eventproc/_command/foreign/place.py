"""Parses ``KIND:PLACE?NAME=VALUE``, which says where another program keeps its positions."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar
from urllib.parse import unquote

from eventproc._command.arguments.access import HubAccess, StorageAccess, secret_in_variable
from eventproc.errors import ConfigurationError
from eventproc.models import ConsumerGroup

_SETTINGS: Final = re.compile(r"\?(?=[a-z-]+=)")
"""Begins the settings; a question mark elsewhere belongs to the place."""

_NAMES: Final = {
    "namespace": "fully_qualified_namespace",
    "eventhub": "eventhub_name",
    "group": "name",
}
AccessT = TypeVar("AccessT", bound=StorageAccess)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where another program keeps its positions."""

    option: str
    kind: str
    name: str
    settings: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.option} {self.kind}:{self.name}"

    def group(self, ours: ConsumerGroup) -> ConsumerGroup:
        """Return the group there: of our names, unless a setting has another."""
        return replace(ours, **{_NAMES[n]: v for n, v in self.settings.items() if n in _NAMES})

    def storage(self, access: StorageAccess) -> StorageAccess:
        """Return how the storage account there is reached."""
        found = self._connection()
        if found is None:
            return access
        return replace(access, storage_connection_string=found, storage_account="")

    def hub(self, access: HubAccess) -> HubAccess:
        """Return how the broker there is reached."""
        found = self._connection()
        if found is None:
            return access
        return replace(access, connection_string=found, namespace="", custom_endpoint="")

    def _connection(self) -> str | None:
        variable = self.settings.get("connection")
        if variable is None:
            return None
        return secret_in_variable(f"{self}?connection=", variable)


def parse_place(option: str, text: str, settings_by_kind: Mapping[str, Collection[str]]) -> Place:
    """Parse the value of an option.

    Raises:
        ConfigurationError: The kind or a setting is not known, or the place is missing.
    """
    kind, colon, rest = text.partition(":")
    if kind not in settings_by_kind or not colon:
        raise ConfigurationError(
            f"{option} is {text!r:.200}: give KIND:PLACE, where KIND is one of "
            f"{', '.join(settings_by_kind)}"
        )
    name, *more = _SETTINGS.split(rest, maxsplit=1)
    if not name:
        raise ConfigurationError(f"{option} {kind}: needs a place after the colon")
    known, settings = settings_by_kind[kind], {}
    for part in filter(None, more[0].split("&") if more else ()):
        key, equals, value = part.partition("=")
        if key not in known or not equals or not value:
            raise ConfigurationError(
                f"{option} {kind}:{name}: after the question mark, give NAME=VALUE with one of "
                f"{', '.join(known)}"
            )
        settings[key] = unquote(value)
    return Place(option=option, kind=kind, name=name, settings=settings)
