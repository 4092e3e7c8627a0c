"""The names and the command line of workers."""

import socket

import pytest

from eventproc import EventProcessorConfig, Ordinal, Published
from eventproc._base.http.address import ListenAddress
from eventproc._command.terminal.log_lines import LogFormat
from eventproc._command.workers.supervisor import first_ordinal, owner_ids, worker_arguments


def arguments_of(*given, ordinal=None, http=None):
    """Return the arguments of the worker ``web-1``."""
    return worker_arguments(
        given, owner_id="web-1", ordinal=ordinal, log_format=LogFormat.JSON, http=http
    )


def test_workers_are_named_after_the_supervisor():
    """Without a name of its own, after the host; the same names at each start."""
    assert owner_ids(3, "web") == ("web-0", "web-1", "web-2")
    assert owner_ids(1, "") == (f"{socket.gethostname()}-0",)


@pytest.mark.parametrize(
    ("owner_id", "ordinal", "expected"),
    [("", None, None), ("web", None, None), ("web-2", None, 8), ("web-2", 1, 4), ("", 0, 0)],
)
def test_supervisors_share_no_ordinals(owner_id, ordinal, expected):
    """The first of four workers; the number at the end of the name is the supervisor's own."""
    config = EventProcessorConfig(placement=Ordinal(), ordinal=ordinal)

    assert first_ordinal(4, owner_id, config) == expected


def test_workers_have_no_ordinal_that_their_placement_would_refuse():
    """Although the supervisor's name ends in a number, as that of a StatefulSet's pod does."""
    assert first_ordinal(4, "web-2", EventProcessorConfig()) is None
    assert first_ordinal(4, "web-2", EventProcessorConfig(placement=Published(Ordinal()))) == 8


def test_a_worker_has_the_supervisors_options_and_then_its_own():
    """The last one counts, so what the supervisor was given is overruled."""
    given = ("run", "shop:Count", "--workers", "2", "--log-format=text", "--owner-id", "web")

    assert arguments_of(*given) == [
        *given,
        *("--workers", "0", "--owner-id", "web-1", "--log-format", "json", "--stop-at-eof"),
    ]


def test_a_worker_is_given_its_ordinal_if_the_supervisor_has_one():
    """Otherwise it is the number at the end of the owner id."""
    assert arguments_of("run", ordinal=5)[-2:] == ["--ordinal", "5"]


def test_a_worker_serves_on_the_socket_that_the_supervisor_asks():
    """What the supervisor was given is its own address."""
    found = arguments_of("run", "--http", "8080", http=ListenAddress(path="/run/1"))

    assert found[-2:] == ["--http", "unix:/run/1"]


def test_options_of_a_worker_stand_before_the_end_of_options():
    """After it everything is an argument."""
    assert arguments_of("run", "--", "shop:Count")[-2:] == ["--", "shop:Count"]
    assert arguments_of("run", "--", "shop:Count")[0] == "run"
