"""How this machine reaches a service: through a proxy, and what a failed connection means."""

from eventproc.network.http_proxy import HttpProxy

__all__ = ["HttpProxy"]
