"""A played Kubernetes API server: it answers how many replicas a StatefulSet should have."""

import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

NAMESPACE: Final = "demo"
STATEFUL_SET: Final = "consumer"

KUBECONFIG: Final = """\
apiVersion: v1
kind: Config
current-context: demo
clusters: [{{name: demo, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: pod, user: {{token: none}}}}]
contexts: [{{name: demo, context: {{cluster: demo, user: pod}}}}]
"""


class ApiServer:
    """Serves the scale of the demo's StatefulSet over HTTP, on loopback."""

    def __init__(self) -> None:
        """Start it; the StatefulSet has no replicas yet."""
        self.replicas = 0
        self.request_count = 0
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{STATEFUL_SET}/scale"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(path))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _handler(self, path: str) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.request_count += 1
                is_known = self.path == path
                scale = {"kind": "Scale", "spec": {"replicas": server.replicas}}
                body = json.dumps(scale if is_known else {"kind": "Status"}).encode()
                self.send_response(HTTPStatus.OK if is_known else HTTPStatus.NOT_FOUND)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler

    def write_kubeconfig(self, path: Path) -> None:
        """Write a file of ``kubectl`` that says where this server is."""
        path.write_text(KUBECONFIG.format(port=self._server.server_port), "utf-8")

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
