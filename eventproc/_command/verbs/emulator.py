"""``eventproc emulator``: an Event Hubs endpoint on this machine."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from eventproc._command.arguments.access import ENDPOINT_VARIABLE, HUB_VARIABLE
from eventproc._command.arguments.options import OutputFormat, StopAtEof
from eventproc._command.terminal.ends import stop_at_end_of_input
from eventproc.emulator import (
    CaptureConfiguration,
    EmulatorConfiguration,
    EmulatorServer,
    HubConfiguration,
    Retention,
    Right,
    TokenRules,
    hubs_of,
    read_config_json,
    run,
)
from eventproc.errors import ConfigurationError

_DEFAULT_HUB = ("orders", 4)


@dataclass(frozen=True, kw_only=True)
class ServingOptions:
    """How clients reach the emulator, and which tokens it takes."""

    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Serve TLS with this certificate (PEM). It needs --key."),
    ] = None
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The certificate's private key (PEM), not encrypted."),
    ] = None
    websocket_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="Serve AMQP over WebSockets, too, on this port; 0 for any free port. With "
            "--certificate it uses TLS. Needs `pip install 'eventproc[http]'`.",
            min=0,
            max=65535,
        ),
    ] = None
    check_tokens: Annotated[
        bool,
        typer.Option(
            "--check-tokens",
            help="Check form, audience and expiry of tokens of Entra ID, but not their signatures. "
            "Connections with a key are still accepted.",
        ),
    ] = False
    rights: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID:RIGHT[,RIGHT]",
            help="Check tokens, and give the identity with this object id the rights Listen, Send "
            "or Manage; all others have none. Repeat it for more identities.",
        ),
    ] = None

    def check(self) -> None:
        """Raise ``ConfigurationError`` if only one of certificate and key is given."""
        if (self.certificate is None) != (self.key is None):
            given, missing = ("--certificate", "--key")[:: 1 if self.certificate else -1]
            raise ConfigurationError(
                f"{given} needs {missing}: TLS takes a certificate and its key"
            )

    def token_rules(self) -> TokenRules | None:
        """Return which tokens the emulator takes; ``None``: any.

        Raises:
            ConfigurationError: ``--rights`` has another form.
        """
        if self.rights:
            return TokenRules(rights_by_identity=_rights_by_identity(self.rights))
        return TokenRules() if self.check_tokens else None


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """Whether the hubs are captured, and how."""

    capture: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Capture all hubs: write their events to Avro files in this folder, as Event Hubs "
            "does. Needs `pip install 'eventproc[capture]'`.",
        ),
    ] = None
    capture_interval: Annotated[
        timedelta, typer.Option(help="With --capture: a partition has a file after this time.")
    ] = timedelta(minutes=5)
    capture_bytes: Annotated[
        int,
        typer.Option(metavar="N", help="With --capture: or as soon as it has this size.", min=1),
    ] = 300 * 1024 * 1024
    skip_empty: Annotated[
        bool,
        typer.Option("--skip-empty", help="With --capture: write no files without events."),
    ] = False

    def configuration(self) -> CaptureConfiguration | None:
        """Return how the hubs are captured; ``None``: not at all."""
        if self.capture is None:
            return None
        return CaptureConfiguration(
            folder=self.capture,
            interval=self.capture_interval,
            bytes_max=self.capture_bytes,
            writes_empty=not self.skip_empty,
        )


def emulator(
    *,
    hub: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:PARTITIONS",
            help="A hub and its number of partitions. Repeat it for more. By default orders:4.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read hubs from a Config.json of Azure's official emulator."
        ),
    ] = None,
    consumer_group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A consumer group of every --hub, besides $Default. Repeat it for more.",
        ),
    ] = None,
    compacted: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A hub that keeps only the newest event of each partition key. Repeat it for "
            "more.",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            metavar="PORT", help="The port to listen on; 0 for any free port.", min=0, max=65535
        ),
    ] = 5672,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="The address to listen on.")
    ] = "127.0.0.1",
    serving: ServingOptions,
    health_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="The port of an HTTP server with GET /health and fault injection; 0 for any free "
            "port. Needs `pip install 'eventproc[http]'`.",
            min=0,
            max=65535,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep events in this folder, over restarts. By default in memory."
        ),
    ] = None,
    retention: Annotated[
        timedelta | None,
        typer.Option(help="Delete events after this time, as Event Hubs does. By default never."),
    ] = None,
    capturing: CaptureOptions,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="json: one line, for programs.")
    ] = OutputFormat.TABLE,
    stop_at_eof: StopAtEof = False,
) -> None:
    """Serve event hubs on this machine, to develop without Azure, for clients of any Azure SDK.

    It prints the connection string to give to a client. It needs only Python. docs/emulator.md
    lists what is not emulated. Ctrl+C or SIGTERM ends it.
    """
    serving.check()
    configuration = EmulatorConfiguration(
        hubs=_compacting(_hubs(config, hub or [], consumer_group or []), compacted or []),
        host=host,
        port=port,
        health_port=health_port,
        directory=data,
        certificate=serving.certificate,
        key=serving.key,
        websocket_port=serving.websocket_port,
        tokens=serving.token_rules(),
        retention=Retention(age_max=retention),
        capture=capturing.configuration(),
    )

    if stop_at_eof:
        stop_at_end_of_input()
    run(configuration, on_ready=lambda server: _announce(server, configuration, output))


def _hubs(
    config: Path | None, named: list[str], consumer_groups: list[str]
) -> tuple[HubConfiguration, ...]:
    hubs = () if config is None else read_config_json(config)
    if hubs and consumer_groups and not named:
        raise ConfigurationError(
            "--consumer-group has no effect on the hubs of --config: name their groups in that file"
        )
    pairs = [parse_hub(text) for text in named]
    if not hubs and not pairs:
        pairs = [_DEFAULT_HUB]
    return hubs + tuple(added for pair in pairs for added in hubs_of(dict([pair]), consumer_groups))


def parse_hub(text: str) -> tuple[str, int]:
    """Parse ``NAME:PARTITIONS``.

    Raises:
        ConfigurationError: The text has another form.
    """
    name, _, count = text.partition(":")
    if not name or not count.isdecimal():
        raise ConfigurationError(f"--hub is {text!r}: give NAME:PARTITIONS, for example orders:8")
    return name, int(count)


def _compacting(
    hubs: tuple[HubConfiguration, ...], compacted: list[str]
) -> tuple[HubConfiguration, ...]:
    for name in compacted:
        if name not in {hub.name for hub in hubs}:
            known = ", ".join(hub.name for hub in hubs)
            raise ConfigurationError(
                f"--compacted is {name!r}, but the hubs are {known}: add --hub {name}:PARTITIONS, "
                "or correct the name"
            )
    return tuple(replace(hub, is_compacted=hub.name in compacted) for hub in hubs)


def _rights_by_identity(texts: Sequence[str]) -> dict[str, frozenset[Right]]:
    by_name = {right.value.casefold(): right for right in Right}
    found: dict[str, frozenset[Right]] = {}
    for text in texts:
        identity, _, names = text.partition(":")
        rights = {by_name.get(name.strip().casefold()) for name in names.split(",")}
        if not identity or None in rights:
            raise ConfigurationError(
                f"--rights is {text!r}: give the object id of an identity, a colon, and one or "
                "more of Listen, Send, Manage with commas between"
            )
        if identity in found:
            raise ConfigurationError(
                f"--rights names identity {identity!r} twice: give all its rights in one"
            )
        found[identity] = frozenset(right for right in rights if right is not None)
    return found


def _announce(
    server: EmulatorServer, configuration: EmulatorConfiguration, output: OutputFormat
) -> None:
    if output is OutputFormat.JSON:
        ready = {
            "connection_string": server.connection_string,
            "endpoint": server.endpoint,
            "host": configuration.host,
            "port": server.port,
            "websocket_port": server.websocket_port,
            "health_port": server.health_port,
            "hubs": {hub.name: hub.partition_count for hub in configuration.hubs},
        }
        print(json.dumps(ready), flush=True)
        return
    tls = ", TLS" if configuration.certificate else ""
    kept = f"kept in {configuration.directory}" if configuration.directory else "kept in memory"
    print(f"Event Hubs emulator on {configuration.host}:{server.port}{tls}, events {kept}")
    for hub in configuration.hubs:
        groups = ", ".join(("$Default", *hub.consumer_groups))
        noun = "partition" if hub.partition_count == 1 else "partitions"
        compacted = ", compacted" if hub.is_compacted else ""
        print(f"  {hub.name}: {hub.partition_count} {noun}, consumer groups {groups}{compacted}")
    if server.websocket_port is not None:
        print(f"  WebSockets: {configuration.host}:{server.websocket_port}{tls}")
    if configuration.capture is not None:
        print(f"  captured in {configuration.capture.folder}")
    if server.health_port is not None:
        print(f"  health: http://{configuration.host}:{server.health_port}/health")
    print("\nConnection string, for any Event Hubs client:\n")
    print(f"  {server.connection_string}\n")
    print("For eventproc, in another terminal:\n")
    print(f"  export {HUB_VARIABLE}='{server.connection_string}'")
    if configuration.certificate is not None:
        # With TLS, clients take a port only from a custom endpoint.
        print(f"  export {ENDPOINT_VARIABLE}='{server.endpoint}'\n")
        print("and --ca-bundle FILE, if the usual certificates do not include the CA's")
    print("\nCtrl+C ends it.", flush=True)
