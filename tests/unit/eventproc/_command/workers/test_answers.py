"""The answers of workers, joined: health, and metrics as Prometheus expects them."""

import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from eventproc._base.http.address import Answer, ListenAddress, verdict
from eventproc._base.http.client import fetch
from eventproc._base.http.server import serve
from eventproc._base.logs import get_logger
from eventproc._command.workers.answers import merged, serve_joined

WITHIN = timedelta(seconds=20)
PATHS = ("/live", "/ready", "/partitions", "/status")


@dataclass
class FakeWorker:
    """What a supervisor knows of a worker."""

    number: int
    pid: int | None = 7
    age_s: float = 1.0
    last_words: str = ""
    address: ListenAddress | None = None

    @property
    def owner_id(self):
        """Its name."""
        return f"host-{self.number}"

    def __hash__(self):
        """As an object, whatever its values are."""
        return id(self)


def routes(worker, *, is_ok=True):
    """Return the answers of one worker."""

    async def answer():
        return verdict([{"owner_id": worker.owner_id, "ok": is_ok, "reasons": []}])

    async def status():
        return Answer({"ok": is_ok, "processors": [{"owner_id": worker.owner_id, "ok": is_ok}]})

    async def metrics():
        return Answer(f"up {int(is_ok)}\n", content_type="text/plain; version=0.0.4")

    return {**dict.fromkeys(PATHS, answer), "/status": status, "/metrics": metrics}


class Setup:
    """A supervisor's endpoint, and workers that serve or do not."""

    def __init__(self, stack: AsyncExitStack, folder: str) -> None:
        self._stack = stack
        self._folder = Path(folder)

    async def begin(self, workers: Any) -> None:
        """Serve for these workers."""
        for worker in workers:
            worker.address = ListenAddress(path=str(self._folder / str(worker.number)))
        self._address = await self._stack.enter_async_context(
            serve_joined(ListenAddress(), workers, get_logger("eventproc.workers"))
        )

    async def serving(self, worker: Any, *, is_ok: bool = True) -> AsyncExitStack:
        """Let a worker answer until the returned stack is closed."""
        stack = AsyncExitStack()
        await stack.enter_async_context(
            serve(worker.address, routes(worker, is_ok=is_ok), "--http")
        )
        self._stack.push_async_exit(stack)
        return stack

    async def ask(self, path: str) -> Answer:
        """Return the supervisor's answer."""
        answer = await fetch(self._address, path, WITHIN)
        assert answer is not None
        return answer

    async def entry(self, path: str, number: int = 0) -> Any:
        """Return the status, and the entry of one worker."""
        answer = await self.ask(path)
        assert isinstance(answer.body, dict)
        return answer.status, answer.body["processors"][number]


@pytest.fixture(name="place")
def _place():
    with tempfile.TemporaryDirectory() as folder:  # The path of a socket has to be short.
        yield folder


async def test_one_worker_that_is_not_ok_turns_the_answer_red(place):
    """Except for the status, which only tells."""
    workers = [FakeWorker(0), FakeWorker(1)]
    async with AsyncExitStack() as stack:
        setup = Setup(stack, place)
        await setup.begin(workers)
        await setup.serving(workers[0], is_ok=False)
        await setup.serving(workers[1])
        codes = {path: (await setup.ask(path)).status for path in PATHS}

    assert codes == {"/live": 503, "/ready": 503, "/partitions": 503, "/status": 200}


async def test_metrics_have_the_number_of_the_worker(place):
    """With the content type that the workers gave."""
    workers = [FakeWorker(0), FakeWorker(1), FakeWorker(2)]
    async with AsyncExitStack() as stack:
        setup = Setup(stack, place)
        await setup.begin(workers)
        for worker in workers[:2]:
            await setup.serving(worker)
        answer = await setup.ask("/metrics")

    assert answer.body == 'up{worker="0"} 1\nup{worker="1"} 1\n'
    assert answer.content_type.startswith("text/plain; version=0.0.4")


async def test_a_worker_that_starts_or_starts_again_is_live_but_not_ready(place):
    """The supervisor restarts it: to restart the supervisor as well would not help."""
    worker = FakeWorker(0)
    async with AsyncExitStack() as stack:
        setup = Setup(stack, place)
        await setup.begin([worker])
        starting = [await setup.entry(path) for path in ("/live", "/ready")]
        worker.pid = None
        worker.age_s = 3600.0
        waiting = [await setup.entry(path) for path in ("/live", "/ready")]
        worker.last_words = "the store does not answer"
        _, after_a_message = await setup.entry("/ready")

    reasons = ["starting: for 1 s it has loaded code, your handler's included"]
    assert [(status, entry["reasons"]) for status, entry in starting] == [
        (200, reasons),
        (503, reasons),
    ]
    assert [status for status, _ in waiting] == [200, 503]
    assert waiting[0][1]["reasons"] == ["the process ended, and is started again"]
    assert after_a_message["reasons"] == [
        "the process ended (the store does not answer), and is started again"
    ]
    assert starting[0][1]["owner_id"] == "host-0"


async def test_a_worker_that_answers_no_more_is_not_live(place):
    """It did answer, so it is not starting: it hangs as a whole."""
    worker = FakeWorker(0)
    async with AsyncExitStack() as stack:
        setup = Setup(stack, place)
        await setup.begin([worker])
        served = await setup.serving(worker)
        before = await setup.entry("/live")
        await served.aclose()
        after = await setup.entry("/live")
        worker.pid = 8
        restarted = await setup.entry("/live")

    assert (before[0], after[0], restarted[0]) == (200, 503, 200)
    assert after[1]["reasons"] == ["no answer within 2 s"]


async def test_a_worker_that_never_answers_is_not_live_after_a_minute(place):
    """Its start hangs."""
    worker = FakeWorker(0, age_s=61.0)
    async with AsyncExitStack() as stack:
        setup = Setup(stack, place)
        await setup.begin([worker])
        status, entry = await setup.entry("/live")

    assert (status, entry["ok"]) == (503, False)


def metrics_of(number):
    """Return a registry with a metric of each kind, and one that only this worker has."""
    registry = CollectorRegistry()
    Counter("handled", "Events.", ["partition"], registry=registry).labels('3 "x"}').inc(number)
    Gauge("lag", "How far {behind}.", registry=registry).set(number)
    Histogram("calls", "Seconds.", buckets=[1, 2], registry=registry).observe(number)
    Gauge(f"own_{number}", "Of one worker.", registry=registry).set(1)
    return registry


def samples(text):
    """Return all samples that Prometheus finds: name, labels and value."""
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def test_each_sample_gets_the_number_of_its_worker():
    """Nothing is lost and nothing else changes, as Prometheus' own parser reads it."""
    texts = {number: generate_latest(metrics_of(number)).decode() for number in (0, 1, 12)}
    expected = [
        (name, labels | {"worker": str(number)}, value)
        for number, text in texts.items()
        for name, labels, value in samples(text)
    ]
    found = samples(merged(texts))

    assert len(found) == len(expected)
    assert all(sample in found for sample in expected)


def test_the_lines_of_a_metric_are_together_under_one_description():
    """The format demands it."""
    texts = {number: generate_latest(metrics_of(number)).decode() for number in (0, 1)}
    lines = merged(texts).splitlines()
    described = [line.split()[2] for line in lines if line.startswith("# TYPE")]

    assert len(described) == len(set(described))
    at = lines.index("# TYPE lag gauge")
    assert lines[at + 1 : at + 3] == ['lag{worker="0"} 0.0', 'lag{worker="1"} 1.0']


def test_openmetrics_has_one_end():
    """It is the last line."""
    texts = {number: generate_openmetrics(metrics_of(number)).decode() for number in (0, 1)}
    text = merged(texts)

    assert text.count("# EOF") == 1
    assert text.endswith("# EOF\n")


def test_metrics_without_descriptions_are_joined_as_well():
    """A sample without labels, with an empty set of them, and with a time."""
    texts = {0: "# TYPE a gauge\na 3\nup 1\n\nold{} 2 170\n", 1: "up 0\n# a remark\na 4\n"}

    assert merged(texts).splitlines() == [
        "# TYPE a gauge",
        'a{worker="0"} 3',
        'a{worker="1"} 4',
        'up{worker="0"} 1',
        'up{worker="1"} 0',
        'old{worker="0"} 2 170',
    ]
