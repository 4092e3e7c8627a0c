"""The options that say how clients reach the emulator: TLS, WebSockets and tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from eventproc.emulator import Right, TokenRules
from eventproc.errors import ConfigurationError


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
