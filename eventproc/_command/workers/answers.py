"""The supervisor's HTTP endpoint: asks the workers, and joins their answers.

Each worker serves its own answers on a Unix socket.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

from eventproc._base.http.address import OK, Answer, Body, ListenAddress, Routes, verdict
from eventproc._base.http.client import fetch
from eventproc._base.http.server import serve
from eventproc._base.logs import Logger
from eventproc._command.workers.worker import STEADY_S, Worker

WITHIN: Final = timedelta(seconds=2)
"""How long a worker may take to answer. A probe has to wait longer: see ``docs/health.md``."""

END_NOTICED_S: Final = 0.1
"""A process that has ended answers nothing; its worker knows of the end this much later."""

_END_OF_METRICS: Final = "# EOF"
"""The last line of the form called OpenMetrics."""


@asynccontextmanager
async def serve_joined(
    address: ListenAddress, workers: Sequence[Worker], log: Logger
) -> AsyncIterator[ListenAddress]:
    """Serve the joined answers of workers while the block lasts; yields the address with its port.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    async with serve(address, JoinedAnswers(workers).routes(), "--http") as bound:
        log.info("http_server_started", address=str(bound))
        yield bound


class JoinedAnswers:
    """The answers of all workers as those of one process."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self._answered: dict[Worker, int] = {}
        """The process of each worker that answered last."""

    def routes(self) -> Routes:
        """Return what answers each path."""
        paths: Routes = {
            "/live": partial(self._joined, "/live"),
            "/ready": partial(self._joined, "/ready"),
            "/partitions": partial(self._joined, "/partitions"),
            "/status": self._status,
            "/metrics": self._metrics,
        }

        async def index() -> Answer:
            return Answer({"paths": list(paths)})

        return {"/": index, **paths}

    async def _joined(self, path: str) -> Answer:
        return verdict(await self._entries(path))

    async def _status(self) -> Answer:
        return Answer(verdict(await self._entries("/status")).body, OK)

    async def _metrics(self) -> Answer:
        answers = {
            worker.number: answer
            for worker, answer in (await self._ask("/metrics")).items()
            if answer is not None and isinstance(answer.body, str) and answer.status == OK
        }
        kinds = {answer.content_type for answer in answers.values()}
        text = merged({number: str(answer.body) for number, answer in answers.items()})
        return Answer(text, content_type=kinds.pop() if kinds else "text/plain")

    async def _entries(self, path: str) -> list[Body]:
        """Return the processors of all workers, each with the number of its worker."""
        found: list[Body] = []
        for worker, answer in (await self._ask(path)).items():
            body = answer.body if answer is not None else None
            entries = body.get("processors") if isinstance(body, dict) else None
            if entries is None:
                entries = [await self._without_answer(worker, path)]
            found += [{**entry, "worker": worker.number} for entry in entries]
        return found

    async def _ask(self, path: str) -> Mapping[Worker, Answer | None]:
        async def ask(worker: Worker) -> Answer | None:
            pid = worker.pid
            answer = None if worker.address is None else await fetch(worker.address, path, WITHIN)
            if answer is not None and pid is not None:
                self._answered[worker] = pid
            return answer

        answers = await asyncio.gather(*map(ask, self._workers))
        return dict(zip(self._workers, answers, strict=True))

    async def _without_answer(self, worker: Worker, path: str) -> Body:
        """Return the entry of a worker that did not answer.

        While it is started, and while the supervisor waits before it starts it again, it is no
        reason to restart the supervisor as well.
        """
        if worker.pid is not None:
            await asyncio.sleep(END_NOTICED_S)
        if worker.pid is None:
            message = f" ({worker.last_words})" if worker.last_words else ""
            reason, is_live = f"the process ended{message}, and is started again", True
        elif self._answered.get(worker) != worker.pid and worker.age_s < STEADY_S:
            reason = (
                f"starting: for {worker.age_s:.0f} s it has loaded code, your handler's included"
            )
            is_live = True
        else:
            reason, is_live = f"no answer within {WITHIN.total_seconds():g} s", False
        is_ok = is_live and path == "/live"
        return {"owner_id": worker.owner_id, "ok": is_ok, "reasons": [reason]}


# --- metrics, in the format that Prometheus reads ------------------------------------------------


def merged(text_by_worker: Mapping[int, str]) -> str:
    """Return one text in which each sample has a label ``worker`` with its worker's number.

    All lines of a metric have to be together, and what describes it is there once for all workers.
    """
    descriptions: defaultdict[str, dict[str, str]] = defaultdict(dict)
    samples: defaultdict[str, list[str]] = defaultdict(list)
    end: list[str] = []
    for number, text in text_by_worker.items():
        metric = ""
        for line in text.splitlines():
            match line.split(" ", 3):
                case ["#", "HELP" | "TYPE" | "UNIT" as kind, metric, *_]:
                    descriptions[metric].setdefault(kind, line)
                case ["#", *_]:
                    end = [line] if line == _END_OF_METRICS else end
                case [sample, *_] if sample:
                    # A histogram's samples have its name and an ending.
                    if not metric or not _name(line).startswith(metric):
                        metric = _name(line)
                    samples[metric].append(_labelled(line, number))
    metrics = dict.fromkeys([*descriptions, *samples])
    lines = [line for m in metrics for line in (*descriptions[m].values(), *samples[m])]
    return "".join(f"{line}\n" for line in [*lines, *end])


def _name(sample: str) -> str:
    return sample.partition("{")[0].partition(" ")[0]


def _labelled(sample: str, number: int) -> str:
    """Return the sample with a label more."""
    name = _name(sample)
    rest = sample[len(name) :]
    label = f'worker="{number}"'
    if not rest.startswith("{"):
        return f"{name}{{{label}}}{rest}"
    others = rest[1:]
    return f"{name}{{{label}{'' if others.startswith('}') else ','}{others}"
