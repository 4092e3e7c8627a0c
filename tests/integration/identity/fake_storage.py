"""A storage account, as a fake, that gives one answer over HTTPS: Azurite knows no roles."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeStorage:
    """Answers every request with this status and error code; a context manager."""

    def __init__(self, tls, status, code):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                content = f"<Error><Code>{code}</Code><Message>No.</Message></Error>".encode()
                self.send_response(status)
                self.send_header("x-ms-request-id", "1")
                self.send_header("x-ms-error-code", code)
                self.send_header("Content-Type", "application/xml")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.certificate, tls.key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self):
        """The account's URL."""
        return f"https://127.0.0.1:{self._server.server_port}/account"
