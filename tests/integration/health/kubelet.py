"""Runs the command as a kubelet would: probes ``/live``, and restarts what fails too often."""

import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from typing import Any, Final

PERIOD_S: Final = 1.0
TIMEOUT_S: Final = 3.0
FAILURE_THRESHOLD: Final = 3


class Pod:
    """One process of the command, which is started again whenever its liveness probe fails."""

    def __init__(self, name, arguments, *, folder, env):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.name = name
        self.restarts: list[str] = []
        """The last answer of the probe before each restart."""

        self._arguments = [*arguments, "--owner-id", name, "--http", str(self.port)]
        self._folder, self._env = folder, env
        self._is_over = threading.Event()
        self._log = (folder / f"{name}.log").open("a")
        self.process = self._start()
        self._thread = threading.Thread(target=self._probe)
        self._thread.start()

    def _start(self):
        return subprocess.Popen(
            [sys.executable, "-m", "eventproc", *self._arguments, "--stop-at-eof"],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
        )

    def ask(self, path) -> tuple[int, Any]:
        """Return the status and the body of an answer; the status is 0 without one in time."""
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())
        except OSError as error:
            return 0, repr(error)

    def _probe(self):
        """Probe in each period; like a startup probe, count nothing before the first success."""
        failures, has_started = 0, False
        while not self._is_over.wait(PERIOD_S):
            status, body = self.ask("/live")
            has_started |= status == 200
            failures = failures + 1 if has_started and status != 200 else 0
            if failures == FAILURE_THRESHOLD:
                self.restarts.append(f"{status}: {body}")
                self._end()
                self.process = self._start()
                failures, has_started = 0, False

    def _end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def close(self):
        """Stop probing, and kill the process."""
        self._is_over.set()
        self._thread.join()
        self._end()
        self._log.close()
