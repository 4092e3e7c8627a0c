"""The token endpoint of a managed identity, as a fake: no Entra ID can run here.

``DefaultAzureCredential`` finds it by the variables that Azure App Service sets. Its tokens have
the claims of genuine ones, and a signature that nobody can check.
"""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HEADER = "the-secret-of-this-machine"


def encoded(part):
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


class FakeManagedIdentity:
    """Issues tokens over HTTP; a context manager."""

    def __init__(self, lifetime_s=3600.0):
        self.lifetime_s = lifetime_s
        self.identity = "the-identity"
        """The claim ``oid`` of the tokens."""

        self.audience = None
        """The audience of all tokens, instead of the one that is asked for."""

        self.status = 200
        self.asked = []
        """The resource of each request."""

        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                query = parse_qs(urlsplit(self.path).query)
                assert self.headers["X-IDENTITY-HEADER"] == HEADER
                status, answer = fake._answer(query["resource"][0])
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def env(self):
        """The variables by which a process finds it."""
        return {
            "IDENTITY_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}/token",
            "IDENTITY_HEADER": HEADER,
        }

    def _answer(self, resource):
        self.asked.append(resource)
        if self.status != 200:
            return self.status, {"error": "unavailable", "error_description": "identity is away"}
        now = time.time()
        expires_on = int(now + self.lifetime_s)
        claims = {
            "aud": self.audience or resource,
            "iss": "https://sts.windows.net/00000000-0000-0000-0000-000000000000/",
            "iat": int(now) - 5,
            "nbf": int(now) - 5,
            "exp": expires_on,
            "oid": self.identity,
            "jti": str(len(self.asked)),
        }
        token = f"{encoded({'alg': 'RS256', 'typ': 'JWT'})}.{encoded(claims)}.fake"
        return 200, {
            "access_token": token,
            "expires_on": str(expires_on),
            "resource": resource,
            "token_type": "Bearer",
        }
