"""The supervisor's HTTP endpoint: asks the workers, and joins their answers.

Each worker serves its own answers on a Unix socket.

Metrics of several workers as one text, in the format that Prometheus reads.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final

from eventproc._base.http.address import OK, Answer, Body, ListenAddress, Routes, verdict
from eventproc._base.http.client import fetch
from eventproc._base.http.server import serve
from eventproc._base.logs import Logger
from eventproc._command.workers.worker import STEADY_S, Worker

_END: Final = "# EOF"
"""The last line of the form called OpenMetrics."""


@dataclass(slots=True)
class _Family:
    """A metric: all its lines have to be together."""

    comments: dict[str, str] = field(default_factory=dict)
    """Help, type and unit, by their kind: once for all workers."""

    samples: list[str] = field(default_factory=list)


def merged(text_by_worker: Mapping[int, str]) -> str:
    """Return one text in which each sample has a label ``worker`` with its worker's number."""
    families: dict[str, _Family] = {}
    has_end = False
    for number, text in text_by_worker.items():
        metric = ""
        for line in text.splitlines():
            kind, name = _comment(line)
            if kind:
                metric = name
                families.setdefault(name, _Family()).comments.setdefault(kind, line)
            elif line.startswith("#"):
                has_end |= line == _END
            elif line:
                # A histogram's samples have its name and an ending.
                if not metric or not _name(line).startswith(metric):
                    metric = _name(line)
                families.setdefault(metric, _Family()).samples.append(_labelled(line, number))
    lines = [line for family in families.values() for line in _lines(family)]
    return "".join(f"{line}\n" for line in [*lines, *([_END] if has_end else [])])


def _lines(family: _Family) -> Iterator[str]:
    yield from family.comments.values()
    yield from family.samples


def _comment(line: str) -> tuple[str, str]:
    """Return kind and metric of a line about a metric; empty for every other line."""
    words: Iterable[str] = line.split(" ", 3)
    match list(words):
        case ["#", "HELP" | "TYPE" | "UNIT" as kind, name, *_]:
            return kind, name
        case _:
            return "", ""


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


WITHIN: Final = timedelta(seconds=2)
"""How long a worker may take to answer. A probe has to wait longer: see ``docs/health.md``."""

END_NOTICED_S: Final = 0.1
"""A process that has ended answers nothing; its worker knows of the end this much later."""


@asynccontextmanager
async def gathering(
    address: ListenAddress, workers: Sequence[Worker], log: Logger
) -> AsyncIterator[ListenAddress]:
    """Serve the joined answers of workers while the block lasts; yields the address with its port.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    async with serve(address, Gathering(workers).routes(), "--http") as bound:
        log.info("http_server_started", address=str(bound))
        yield bound


class Gathering:
    """Joins the answers of workers."""

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
