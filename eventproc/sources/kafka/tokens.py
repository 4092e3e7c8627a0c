"""Tokens of Entra ID for the Kafka client, by SASL's mechanism OAUTHBEARER."""

import asyncio
from typing import cast

from eventproc.identity import AnyTokenCredential, NoTokenError, SharedCredential, shared
from eventproc.sources.kafka.errors import TokenError


class Tokens:
    """Gives the client the tokens of a credential."""

    def __init__(self, credential: AnyTokenCredential | SharedCredential, host: str) -> None:
        """Use the credential, which is not closed, for the namespace with this host name."""
        self._credential = cast("SharedCredential", shared(credential))
        self._scope = f"https://{host}/.default"
        self.reason = ""
        """Why the client got no token when it asked last; empty if it got one."""

    async def check(self) -> None:
        """Raise an error now if the client would get no token.

        Raises:
            TokenError: The credential gives none; the message has the remedy.
        """
        try:
            await self._credential.get_token(self._scope)
        except NoTokenError as error:
            raise TokenError(str(error)) from error

    def __call__(self, _: str) -> tuple[str, float]:
        """Return a token and when it expires, in seconds since the epoch; blocks.

        librdkafka calls it on a thread of its own when 80 % of a token's life are over, and again
        after ten seconds if it raises an error.

        Raises:
            TokenError: The credential gives none, and the former one has expired.
        """
        try:
            token = asyncio.run(self._credential.get_token(self._scope))
        except NoTokenError as error:
            self.reason = str(error)
            raise TokenError(self.reason) from error
        self.reason = ""
        return token.token, float(token.expires_on)
