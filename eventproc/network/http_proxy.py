"""An HTTP proxy: its address, and the user that it asks for."""

from dataclasses import dataclass, field
from typing import Annotated, Self
from urllib.parse import quote, unquote, urlsplit

from eventproc.errors import ConfigurationError
from eventproc.settings import SECRET, Within, check_settings, checked


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProxy:
    """An HTTP proxy between this process and a service."""

    host: str
    port: Annotated[int, Within(least=1, most=65535)]
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the values; a ``ConfigurationError`` says how to correct them."""
        check_settings(self)

    @classmethod
    @checked
    def from_url(cls, url: Annotated[str, SECRET]) -> Self:
        """Parse ``http://[USER:PASSWORD@]HOST:PORT``; ``%40`` stands for ``@`` in user or password.

        Raises:
            ConfigurationError: it has another form; the message does not repeat the password.
        """
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        is_plain = parts.scheme == "http" and not parts.path.strip("/") and not parts.query
        if not parts.hostname or not port or not is_plain:
            raise ConfigurationError(
                "give http://HOST:PORT, or http://USER:PASSWORD@HOST:PORT if the proxy asks for a "
                "user",
                setting="http_proxy",
            )
        return cls(
            host=parts.hostname,
            port=port,
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
        )

    @property
    def url(self) -> str:
        """The address as a URL, without the user."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def url_with_user(self) -> str:
        """The address as a URL, with user and password: a secret."""
        if not self.username:
            return self.url
        user = f"{quote(self.username, safe='')}:{quote(self.password or '', safe='')}"
        return self.url.replace("//", f"//{user}@", 1)
