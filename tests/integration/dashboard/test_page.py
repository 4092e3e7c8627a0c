"""``eventproc dashboard`` over HTTP: what it shows, and what it refuses."""

import asyncio
import re
import signal

import aiohttp
import pytest

from eventproc._command import main
from tests.integration.dashboard.conftest import COUNT


@pytest.fixture(name="dashboard")
def _dashboard(orders, tmp_path, monkeypatch, capsys):
    """Return a function that runs the verb in this process, to its end."""
    (tmp_path / "group.db").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENTPROC_CONNECTION_STRING", orders.connection_string)

    def run(*options):
        code = main(["dashboard", "--store", "sqlite:group.db", *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


RESET = {"action": "reset", "to": "earliest", "partitions": ["0"]}


async def test_the_stream_shows_owners_positions_and_lag(records, start_page):
    """Of the store and of the hub, in one message."""
    await records.write(partitions=("0", "1"))
    found = (await start_page().first())["group"]

    assert found["owners"] == [["one", 0]]
    assert found["partitions"]["id"] == ["0", "1", "2", "3"]
    assert found["partitions"]["owner"] == [0, 0, -1, -1]
    assert found["partitions"]["position"] == [9, 9, None, None]
    assert found["partitions"]["lag"] == [COUNT - 10, 0, 10, 10]
    assert found["members"][0]["id"] == "one"


async def test_a_member_that_joins_appears_in_the_log(records, start_page):
    """With what it claimed, as the readings go on."""
    await records.write()
    page = start_page()
    async with aiohttp.ClientSession() as client, page.stream(client) as messages:
        await anext(messages)
        await records.write(owner_id="two", partitions=("1",))
        log: list[dict] = []
        while len(log) < 2:
            log += (await anext(messages))["group"]["log"]

    assert [entry["text"] for entry in log][:2] == ["two joined", "two claimed partition 1"]


async def test_it_ends_with_a_signal_while_a_browser_looks(records, start_page):
    """In good order."""
    page = start_page()
    async with aiohttp.ClientSession() as client, page.stream(client) as messages:
        await anext(messages)
        page.process.send_signal(signal.SIGTERM)

        assert await asyncio.to_thread(page.process.wait, 30) == 0


async def test_a_change_is_shown_confirmed_and_made_once(records, start_page):
    """Nothing is written before the confirmation, and nothing more at the second one."""
    await records.write()
    page = start_page("--allow-changes")

    planned, plan = await page.change("/changes", RESET)
    before = await records.positions()
    made, result = await page.change("/changes/confirm", {"id": plan["id"]})
    after = await records.positions()
    again, _ = await page.change("/changes/confirm", {"id": plan["id"]})

    assert (planned, made, again) == (200, 200, 410)
    assert (before, after) == ({"0": 9}, {"0": -1})
    assert plan["changes"][0]["repeated_count"] == 10
    assert result["changes"][0]["is_moved"]
    assert result["changes"][0]["notified_owner_id"] == "one"


async def test_partitions_are_paused_and_resumed(records, start_page):
    """After the confirmation, and with the reason."""
    await records.write(partitions=("0", "1"))
    page = start_page("--allow-changes")
    found = []
    for action, reason in (("pause", "a wrong price"), ("resume", "")):
        asked = {"action": action, "partitions": ["0"], "reason": reason}
        _, plan = await page.change("/changes", asked)
        found.append(await records.pauses())
        _, result = await page.change("/changes/confirm", {"id": plan["id"]})
        found.append(await records.pauses())
        assert result["text"].startswith(f"{action.capitalize()}d: 0.")

    paused = {"0": "a wrong price"}
    assert found == [{}, paused, paused, {}]


@pytest.mark.long
async def test_a_whole_group_is_paused_and_resumed(records, start_page):
    """While it is paused, no single partition can be resumed; the resume ends every pause."""
    await records.write(partitions=("0", "1"))
    page = start_page("--allow-changes")
    one = {"action": "pause", "partitions": ["0"], "reason": "a wrong price"}
    whole = {"action": "pause", "is_whole": True, "reason": "the database moves"}
    results = []
    for asked in (one, whole):
        _, plan = await page.change("/changes", asked)
        results.append((await page.change("/changes/confirm", {"id": plan["id"]}))[1]["text"])
    paused = await records.pauses()
    status, refused = await page.change("/changes", {"action": "resume", "partitions": ["0"]})
    _, plan = await page.change("/changes", {"action": "resume", "is_whole": True})
    before = await records.pauses()
    await page.change("/changes/confirm", {"id": plan["id"]})

    assert results[1].startswith("Paused: the whole group.")
    assert paused == before == {"group": "the database moves", "0": "a wrong price"}
    assert (status, "resume the whole group" in refused["error"]) == (409, True)
    assert await records.pauses() == {}


FOREIGN_HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"X-Eventproc-Token": "another"},
    {"Cookie": "token={token}"},
    {"X-Eventproc-Token": "{token}", "Origin": "http://evil.example"},
    {"X-Eventproc-Token": "{token}", "Host": "evil.example"},
    {"X-Eventproc-Token": "{token}", "Sec-Fetch-Site": "cross-site"},
    {"X-Eventproc-Token": "{token}", "Content-Type": "text/plain"},
)


async def test_a_request_without_the_token_or_from_elsewhere_changes_nothing(records, start_page):
    """Neither a plan nor its confirmation."""
    await records.write()
    page = start_page("--allow-changes")
    _, plan = await page.change("/changes", RESET)
    for headers in FOREIGN_HEADERS:
        given = {name: value.format(token=page.token) for name, value in headers.items()}

        asked, answer = await page.post("/changes", RESET, **given)
        confirmed, _ = await page.post("/changes/confirm", {"id": plan["id"]}, **given)

        assert asked in {401, 403, 415}, headers
        assert confirmed == asked
        assert answer.keys() == {"error"}
    assert await records.positions() == {"0": 9}


async def test_without_leave_to_change_nothing_can_be(records, start_page):
    """There is no token, and none helps."""
    await records.write()
    page = start_page()

    assert page.token is None
    status, _ = await page.post("/changes", RESET, **{"X-Eventproc-Token": ""})
    assert status == 403


IMPOSSIBLE = (
    ({**RESET, "to": "never"}, "The target is 'never'"),
    ({**RESET, "partitions": ["9"]}, "there is no such partition"),
    ({**RESET, "partitions": []}, "which partitions"),
    ({**RESET, "partitions": "0"}, "which partitions"),
    ({**RESET, "to": 0}, "where to"),
    ({"action": "pause", "partitions": ["0"]}, "the reason of a pause"),
    ({"action": "pause", "partitions": ["9"], "reason": "x"}, "there is no such partition"),
    ({"action": "resume", "partitions": []}, "which partitions"),
    ({"action": "pause", "is_whole": True, "reason": " "}, "the reason of a pause"),
    ({"action": "resume", "is_whole": "yes"}, "which partitions"),
    ({"action": "drop"}, "There is no such action"),
)


async def test_a_change_that_is_not_possible_is_refused_with_the_reason(records, start_page):
    """Before anything is written."""
    await records.write()
    page = start_page("--allow-changes")
    for body, message in IMPOSSIBLE:
        status, answer = await page.change("/changes", body)

        assert status in {400, 409}
        assert message in answer["error"]
    assert await records.positions() == {"0": 9}


async def test_a_group_of_another_sdk_is_not_changed(records, start_page):
    """Its processors would not take notice, and overwrite it."""
    await records.write()
    await records.write(owner_id="azure", is_ours=False, partitions=("1",))
    status, answer = await start_page("--allow-changes").change("/changes", RESET)

    assert status == 409
    assert "azure is a processor of an Azure SDK" in answer["error"]
    assert (await records.positions())["0"] == 9


async def test_a_name_that_was_not_given_gets_nothing(records, start_page):
    """A page whose own name leads here (DNS rebinding); the option names it."""
    refusing, allowing = start_page(), start_page("--allow-host", "page.example")
    async with aiohttp.ClientSession() as client:
        for path in ("/", "/events", "/about", "/page.js"):
            headers = {"Host": "page.example"}
            async with client.get(f"{refusing.origin}{path}", headers=headers) as answer:
                assert answer.status == 403
        async with client.get(f"{allowing.origin}/", headers={"Host": "page.example"}) as answer:
            assert answer.status == 200


async def test_no_answer_has_a_secret_and_every_page_is_guarded(orders, records, start_page):
    """Neither the key of the hub nor the token; nothing is loaded from elsewhere."""
    await records.write()
    page = start_page("--allow-changes")
    (key,) = re.findall("SharedAccessKey=([^;]+)", orders.connection_string)
    answers = [str(await page.first())]
    async with aiohttp.ClientSession() as client:
        for path in ("/", "/about", "/page.js", "/style.css", "/icon.svg", "/none"):
            async with client.get(f"{page.origin}{path}") as answer:
                answers += [await answer.text(), str(answer.headers)]
                if answer.status == 200:
                    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                assert "Set-Cookie" not in answer.headers

    assert key
    assert not [text for text in answers if key in text or page.token in text]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--every", "0.01s"), "--every is 0.01 s: give 0.1 s or more"),
        (("--stuck-after", "0s"), "--stuck-after is 0 s: give more than 0 s"),
        (("--http", "unix:a.sock"), "--http is 'unix:a.sock': a browser needs [HOST:]PORT"),
        (("--http", "1.2.3.4:80"), "--http 1.2.3.4:80 cannot be listened on"),
        (("--resources", "keys", "--allow-changes"), "has no checkpoints to move"),
    ],
)
def test_an_option_that_is_wrong_is_refused(dashboard, options, message):
    """With the option's name, before anything is served."""
    code, out, err = dashboard("--eventhub", "orders", *options)

    assert (code, out) == (2, "")
    assert message in err


def test_a_hub_that_does_not_exist_is_refused_at_the_start(dashboard):
    """As with the other verbs."""
    code, out, err = dashboard("--eventhub", "none", "--http", "0")

    assert (code, out) == (2, "")
    assert "none" in err
