"""The verbs of ``eventproc dead-letters``: what they show, ask, change and refuse."""

import asyncio
import io
import json
from dataclasses import replace
from datetime import timedelta
from textwrap import dedent
from typing import Any

import pytest

from eventproc._command import main
from eventproc._command.group.letters import whole_text
from eventproc.emulator import EventHubsEmulator
from eventproc.models import UNDECODED, StoredLetter
from tests.integration.dead_letters.letters import (
    HANDLER,
    letters_of,
    namespace_of,
    stored,
)
from tests.integration.dead_letters.places import (
    BlobPlace,
    HubPlace,
    letter,
)


@pytest.fixture(name="tool")
def _tool(storage, container, hubs, tmp_path, monkeypatch, capsys):
    """Return a function that runs a verb on a container."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_STORAGE_CONNECTION_STRING", storage)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", hubs.connection_string)
    (tmp_path / "shop.py").write_text(dedent(HANDLER))

    def run(verb, *arguments, answer="", place=f"blob:{container}"):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        code = main(["dead-letters", verb, place, *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(name="full")
def _full(storage, container, hubs):
    """Store ten letters, and damage an eleventh; return their place."""
    place = BlobPlace(storage, container)
    asyncio.run(place.store(letters_of(namespace_of(hubs), 10)))
    asyncio.run(place.damage(b"{}"))
    return place


def test_letters_are_listed_and_shown(tool, full):
    """As a table, and as JSON with everything."""
    code, out, err = tool("list")
    assert (code, err) == (0, "")
    assert "11 dead letters: 10 ValueError, 1 damaged" in out
    assert "ValueError: no order 3" in out
    assert "damaged: it is not a JSON object with an event" in out

    code, out, _ = tool("list", "--error", "no order 3", "--format", "json")
    (one,) = json.loads(out)["letters"]
    assert (code, one["sequence_number"], one["partition_key"]) == (0, 3, "key 3")

    code, out, _ = tool("show", "--id", one["letter_id"])
    assert code == 0
    assert "body (1 byte):\n3" in out
    assert "Traceback ..." in out
    code, out, _ = tool("show", "--format", "json")
    found = json.loads(out)
    assert [each["damage"] for each in found] == [None] * 10 + [
        "it is not a JSON object with an event"
    ]
    assert found[10]["raw_base64"] == "e30="


def test_the_hub_of_a_shell_that_runs_a_group_hides_no_letters(tool, full, monkeypatch):
    """Only the option ``--eventhub`` restricts them: what nobody asked for hides nothing."""
    monkeypatch.setenv("EVENTPROC_EVENTHUB", "payments")

    assert "11 dead letters" in tool("list")[1]
    assert "no dead letters here" in tool("list", "--eventhub", "payments")[1]
    assert tool("drop", "--damaged", "--yes")[1] == "1 dead letter removed.\n"


def test_a_long_list_is_cut_at_the_limit(tool, full):
    """And says so."""
    _, out, _ = tool("list", "--limit", "3")
    assert "no order 2" in out
    assert "no order 3" not in out
    assert "The first 3 dead letters: 3 ValueError. There are more: --limit 0 shows all." in out
    assert "no order 9" in tool("list", "--limit", "0")[1]


def test_a_replay_asks_and_leaves_what_is_damaged(tool, full, hubs):
    """With the number of letters and the hub; then exit code 1, because one stays."""
    code, out, _ = tool("replay", answer="n\n")
    assert (code, stored(hubs)) == (1, 0)
    assert "Replay 11 dead letters to orders, and remove what is delivered? [y/N]" in out

    code, out, err = tool("replay", answer="y\n")
    assert (code, stored(hubs)) == (1, 10)
    assert "10 replayed, 1 damaged." in out
    assert "stays: it is not a JSON object with an event" in err

    code, out, _ = tool("drop", "--damaged", "--yes")
    assert (code, out) == (0, "1 dead letter removed.\n")
    assert "no dead letters here" in tool("list")[1]


def test_a_dry_run_changes_nothing(tool, full, hubs):
    """It shows which letters match."""
    for verb in ("replay", "drop"):
        code, out, _ = tool(verb, "--partition", "2", "--dry-run")
        assert (code, stored(hubs)) == (0, 0)
        assert "10 dead letters: 10 ValueError" in out
    assert json.loads(tool("list", "--format", "json")[1])["count"] == 11


def test_dropped_letters_are_those_that_match(tool, full):
    """The question has their number."""
    code, out, _ = tool("drop", "--until", "2026-01-01T12:04:00Z", answer="y\n")
    assert code == 0
    assert "Remove 4 dead letters" in out
    assert "4 dead letters removed." in out
    found = json.loads(tool("list", "--format", "json")[1])["letters"]
    assert [each.get("sequence_number") for each in found] == [*range(4, 10), None]


def test_a_replay_as_json_says_what_became_of_each_letter(tool, full):
    """With counts; without a confirmation it is refused."""
    assert tool("replay", "--format", "json")[0] == 2
    code, out, _ = tool("replay", "--format", "json", "--yes")
    report: dict[str, Any] = json.loads(out)
    assert code == 1
    assert report["counts"] == {"replayed": 10, "refused": 0, "held_back": 0, "damaged": 1}
    assert report["letters"][0]["outcome"] == "replayed"


def test_a_replay_to_another_hub_has_to_be_named(tool, full, hubs, monkeypatch):
    """Letters of another namespace are not published by mistake."""
    with EventHubsEmulator({"orders": 4}) as other:
        monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", other.connection_string)
        code, _, err = tool("replay", "--yes")
        assert (code, stored(other)) == (2, 0)
        assert "--publish-to orders" in err
        code, _, _ = tool("replay", "--yes", "--publish-to", "orders", "--partition", "2")
        assert (code, stored(other), stored(hubs)) == (0, 10, 0)


def test_a_hub_of_the_same_name_in_another_namespace_needs_no_such_partition(
    tool, storage, container, hubs, monkeypatch
):
    """It is another hub, in which the letter's partition means nothing."""
    (found,) = letters_of(namespace_of(hubs), 1)
    keyless = replace(found, event=replace(found.event, partition_key=None))
    asyncio.run(BlobPlace(storage, container).store([keyless]))
    with EventHubsEmulator({"orders": 1}) as other:
        monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", other.connection_string)
        code, _, err = tool("replay", "--yes", "--publish-to", "orders")

        assert (code, err, stored(other)) == (0, "", 1)


def test_letters_of_several_hubs_are_not_mixed(tool, storage, container, hubs):
    """The operator chooses one."""
    place = BlobPlace(storage, container)
    of_orders = letters_of(namespace_of(hubs), 1)
    group = replace(of_orders[0].group, eventhub_name="payments")
    asyncio.run(place.store([*of_orders, replace(of_orders[0], group=group)]))
    code, _, err = tool("replay", "--yes")
    assert code == 2
    assert "orders, payments: choose one of them with --eventhub" in err
    assert tool("replay", "--yes", "--eventhub", "orders")[0] == 0


@pytest.mark.parametrize(
    ("place", "arguments", "message"),
    [
        ("function:x", (), "read them where that function puts them"),
        ("memory:", (), "is in the memory of its process"),
        ("kafka:dead", (), "there is no sink for Kafka topics"),
        ("dead", (), "give blob:CONTAINER"),
        ("blob:x?prefix", (), "takes prefix=..."),
        ("queue:q?delivery-limit=3", (), "RabbitMQ broker"),
        ("eventhub:dead?group=x", (), "takes consumer-group=..."),
        ("blob:letters", ("--since", "noon"), "--since is 'noon'"),
    ],
)
def test_a_place_that_cannot_be_read_is_refused_with_the_reason(tool, place, arguments, message):
    """In the words of the command line, with exit code 2."""
    code, _, err = tool("list", *arguments, place=place)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("verb", "arguments", "message"),
    [
        ("replay", ("--handler", "shop:Note", "--publish-to", "x"), "not both"),
        ("replay", ("--handler", "shop:Nothing"), "has no 'Nothing'"),
        ("replay", ("--handler", "shop:Booking", "--yes"), "to the hub, without a handler"),
        ("drop", ("--damaged", "--error", "x"), "leave the other options out"),
        ("drop", (), "standard input is closed"),
    ],
)
def test_options_that_contradict_each_other_are_refused(tool, full, verb, arguments, message):
    """Nothing is changed."""
    code, _, err = tool(verb, *arguments)
    assert code == 2
    assert message in err
    assert json.loads(tool("list", "--format", "json")[1])["count"] == 11


def test_a_log_of_letters_needs_a_store_to_remove_from(tool, hubs):
    """It may be listed without one."""
    asyncio.run(HubPlace(hubs).store(letters_of(namespace_of(hubs), 2)))
    assert "2 dead letters" in tool("list", place="eventhub:dead")[1]
    code, _, err = tool("drop", "--yes", place="eventhub:dead")
    assert code == 2
    assert "give --store STORE" in err
    store = ("--store", "sqlite:group.db")
    assert tool("drop", "--yes", *store, place="eventhub:dead")[0] == 0
    assert "no dead letters here" in tool("list", *store, place="eventhub:dead")[1]


def test_a_hub_that_does_not_answer_ends_the_replay(tool, full, hubs, monkeypatch):
    """With exit code 3: the same command continues."""
    monkeypatch.setattr("eventproc.dead_letters._to_hub.PATIENCE", timedelta(seconds=1))
    hubs.stop()
    code, _, err = tool("replay", "--yes")
    hubs.start()
    assert code == 3
    assert json.loads(tool("list", "--format", "json")[1])["count"] == 11
    assert "orders" in err


def shown(**fields: Any) -> list[str]:
    event = replace(letter(1).event, **fields)
    stored_letter = StoredLetter(place="place", letter=replace(letter(1), event=event))
    return whole_text(stored_letter).plain.splitlines()


def test_show_gives_the_reason_why_an_event_could_not_be_decoded():
    """Its body is not the publisher's."""
    lines = shown(system_properties={UNDECODED: "no AMQP value at byte 7"})

    assert "not decoded: no AMQP value at byte 7" in lines


def test_show_has_a_line_for_each_property_whatever_its_text():
    """Its name and the key are the publisher's."""
    lines = shown(partition_key="a\nattempts: 0", properties={"b\nerror: none": "c"})

    assert not {"attempts: 0", "error: none"} & set(lines)
    assert "key: a\\nattempts: 0" in lines
