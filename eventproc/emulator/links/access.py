"""What the tokens of one connection allow."""

from collections.abc import Iterator

from eventproc.emulator.amqp.refusal import right_missing
from eventproc.emulator.tokens import Grant, Right, TokenRules


class Access:
    """The newest token for each hub. Without rules everything is allowed."""

    def __init__(self, rules: TokenRules | None) -> None:
        self._rules = rules
        self._grants: dict[str, Grant] = {}

    def present(self, hub: str, kind: str, token: str, now_s: float) -> None:
        """Take a token for a hub; it replaces the former one.

        Raises:
            RefusedError: The token is not taken.
        """
        if self._rules is not None:
            self._grants[hub.casefold()] = self._rules.grant_for(kind, token, now_s)

    def require(self, hub: str, rights: tuple[Right, ...], path: str, now_s: float) -> None:
        """Raise ``RefusedError`` if the newest token for a hub has none of the rights."""
        if self._rules is None:
            return
        grant = self._grants.get(hub.casefold())
        if grant is None or grant.has_expired(now_s) or not set(rights) & set(grant.rights):
            raise right_missing(rights[0], path)

    def expired(self, now_s: float) -> Iterator[str]:
        """Forget tokens that have expired, and yield their hubs in lower case."""
        for hub, grant in list(self._grants.items()):
            if grant.has_expired(now_s):
                del self._grants[hub]
                yield hub

    def next_expiry_s(self) -> float | None:
        """Return when the next token expires, in seconds since the epoch."""
        return min(
            (g.expires_at_s for g in self._grants.values() if g.expires_at_s is not None),
            default=None,
        )
