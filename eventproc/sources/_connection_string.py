"""Parse and check an Event Hubs connection string, before anything is connected.

Rule: an error message never repeats a part of the string that could be a key.
"""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from eventproc._base.secrets import read_secret
from eventproc.errors import ConfigurationError

FORMAT: Final = (
    "Endpoint=sb://<namespace>.servicebus.windows.net/;SharedAccessKeyName=<name>;"
    "SharedAccessKey=<key>;EntityPath=<event hub>"
)
"""The form that Azure's portal shows under "Shared access policies"."""

_IOT_HUB: Final = ".azure-devices."

PORT_OF_TLS: Final = 5671
"""The only port that Azure's client uses with TLS, whatever the string says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubConnection:
    """Address of an event hub, and the credentials for it. Its ``repr`` contains no secret."""

    fully_qualified_namespace: str
    """Host name, with the port if one was given: exactly what Azure's own processors write into
    the names of their records."""

    eventhub_name: str
    is_emulator: bool
    """True for an emulator, which is connected to without TLS."""

    is_over_websockets: bool = False
    """Whether the string says ``TransportType=AmqpWebSockets``."""

    key_name: str | None = None
    key: str | None = field(default=None, repr=False)
    signature: str | None = field(default=None, repr=False)
    """A shared access signature, given instead of a key."""


def parse_connection_string(
    conn_str: str, eventhub_name: str | None = None, *, called: str = "eventhub_name"
) -> HubConnection:
    """Check the connection string and return the address and credentials in it.

    Args:
        conn_str: of a namespace, or of one event hub (then it ends in ``EntityPath=...``); or
            where it is, as ``read_secret`` takes it.
        eventhub_name: required with the connection string of a namespace.
        called: the name of the caller's parameter for *eventhub_name*, for error messages.

    Raises:
        ConfigurationError: the string cannot work; the message says what to do and does not
            contain the key.
    """
    values = _split(read_secret(conn_str))
    if _IOT_HUB in values.get("hostname", ""):
        raise ConfigurationError(
            "this is the connection string of an IoT hub, for its devices and services: give the "
            "one of its events, which the portal shows under Built-in endpoints as the Event "
            f"Hub-compatible endpoint. Its form is {FORMAT}"
        )
    endpoint = values.get("endpoint") or values.get("hostname")
    if not endpoint:
        raise ConfigurationError(f"the connection string has no Endpoint. Its form is {FORMAT}")
    _check_key(values)
    is_emulator = _is_emulator(values.get("usedevelopmentemulator"))
    return HubConnection(
        fully_qualified_namespace=_host(endpoint, is_emulator=is_emulator),
        eventhub_name=_hub_name(values.get("entitypath"), eventhub_name, called),
        is_emulator=is_emulator,
        is_over_websockets=_is_over_websockets(values.get("transporttype", "amqp")),
        key_name=values.get("sharedaccesskeyname"),
        key=values.get("sharedaccesskey"),
        signature=values.get("sharedaccesssignature"),
    )


def check_namespace(fully_qualified_namespace: str) -> str:
    """Return the host name.

    Raises:
        ConfigurationError: it is not a bare host name.
    """
    name = fully_qualified_namespace
    if not name or name != name.strip() or "/" in name or ";" in name:
        raise ConfigurationError(
            "give a bare host name such as contoso.servicebus.windows.net; this is not the place "
            "of a connection string",
            setting="fully_qualified_namespace",
            value="" if ";" in name else repr(name),  # it could be a whole connection string
        )
    return name


def check_hub_name(eventhub_name: str) -> str:
    """Return the name of the event hub.

    Raises:
        ConfigurationError: it is empty, or begins or ends with blanks.
    """
    if not eventhub_name or eventhub_name != eventhub_name.strip():
        raise ConfigurationError(
            "give the event hub's name without blanks",
            setting="eventhub_name",
            value=repr(eventhub_name),
        )
    return eventhub_name


def _split(conn_str: str) -> dict[str, str]:
    """Split the string into its values, by name in lower case."""
    if not conn_str.strip():
        raise ConfigurationError(
            "the connection string is empty: is the environment variable or setting that should "
            f"hold it set? Its form is {FORMAT}"
        )
    if conn_str != conn_str.strip():
        raise ConfigurationError(
            "the connection string begins or ends with blanks or a line break: remove them"
        )
    values: dict[str, str] = {}
    for number, part in enumerate(conn_str.rstrip(";").split(";"), start=1):
        name, equals, value = part.partition("=")
        if not equals or name != name.strip() or value != value.strip():
            raise ConfigurationError(
                f"part {number} of the connection string is not of the form name=value without "
                f"blanks around either (parts are separated by semicolons). Its form is {FORMAT}"
            )
        if name.lower() in values:
            raise ConfigurationError(
                f"part {number} of the connection string has a name that was there before: keep one"
            )
        values[name.lower()] = value
    return values


def _check_key(values: dict[str, str]) -> None:
    has_name, has_key = (
        bool(values.get(name)) for name in ("sharedaccesskeyname", "sharedaccesskey")
    )
    has_signature = bool(values.get("sharedaccesssignature"))
    if has_name != has_key:
        missing = "SharedAccessKey" if has_name else "SharedAccessKeyName"
        raise ConfigurationError(f"the connection string has no {missing}. Its form is {FORMAT}")
    if not has_key and not has_signature:
        raise ConfigurationError(
            "the connection string has neither SharedAccessKeyName and SharedAccessKey nor "
            f"SharedAccessSignature. Its form is {FORMAT}"
        )


def _is_emulator(value: str | None) -> bool:
    if value in (None, "false"):
        return False
    if value != "true":
        # Azure's client treats any other spelling as false and then uses TLS with a server that
        # does not: the resulting error does not point to the spelling.
        raise ConfigurationError(
            f"UseDevelopmentEmulator={value} in the connection string must be exactly "
            "UseDevelopmentEmulator=true, in lower case"
        )
    return True


def _is_over_websockets(transport: str) -> bool:
    if transport.lower() not in {"amqp", "amqptcp", "amqpwebsockets"}:
        raise ConfigurationError(
            f"TransportType={transport} in the connection string is not supported: give "
            "AmqpWebSockets, or remove it"
        )
    return transport.lower() == "amqpwebsockets"


def _host(endpoint: str, *, is_emulator: bool) -> str:
    url = urlsplit(endpoint)
    try:
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if not host or url.username is not None:
        raise ConfigurationError(
            "the Endpoint in the connection string is not of the form "
            "sb://<namespace>.servicebus.windows.net/"
        )
    if port not in (None, PORT_OF_TLS) and not is_emulator:
        raise ConfigurationError(
            f"the Endpoint names port {port}, which is honoured only for an emulator: add "
            "UseDevelopmentEmulator=true, or remove the port and give a custom endpoint"
        )
    return url.netloc


def _hub_name(entity_path: str | None, eventhub_name: str | None, called: str) -> str:
    if eventhub_name is not None:
        check_hub_name(eventhub_name)
    if entity_path and eventhub_name and entity_path.lower() != eventhub_name.lower():
        raise ConfigurationError(
            f"the connection string is for event hub {entity_path!r} (its EntityPath): give one of "
            "them, or the same",
            setting=called,
            value=repr(eventhub_name),
        )
    name = eventhub_name or entity_path
    if not name:
        raise ConfigurationError(
            "the connection string has no EntityPath, so give the name of the event hub",
            setting=called,
            value="not given",
        )
    return name
