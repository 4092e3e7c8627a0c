"""The page in a real Chromium: what it shows, keyboard and screen reader, and changes."""

import asyncio

import pytest

from tests.integration.dashboard.browser import (
    looking_at,
    owner_colour,
    rgb_of,
    shown,
    until_pictured,
)
from tests.integration.dashboard.conftest import COUNT

PARTITIONS = 4

TEXTS = """() => [...document.querySelectorAll("h1, h2, h3, p, th, td, time, .badge, .chip, label")]
    .filter((e) => e.innerText?.trim() && e.checkVisibility() && !e.matches(".sr, .sr *"))
    .map((e) => {
        let behind = e;
        while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)")
            behind = behind.parentElement;
        return [e.innerText.slice(0, 30), getComputedStyle(e).color,
            getComputedStyle(behind).backgroundColor];
    })"""
"""Each visible text with its colour and the one behind it."""


async def test_the_page_shows_a_group_and_a_join_as_it_happens(records, start_page):
    """In picture, tables, log and totals; with the keyboard; and it loads nothing from
    elsewhere."""
    await records.write()
    page = start_page("--stuck-after", "0.5s")
    async with looking_at(f"{page.origin}/") as browser:
        await shown(browser, "#headline", "is stuck")
        finding = await (await shown(browser, ".finding", "no progress")).inner_text()
        await records.write(owner_id="two", partitions=("1",))
        await shown(browser, "#log li", "two claimed partition 1")
        await until_pictured(browser, 1, PARTITIONS, await owner_colour(browser, "two"))
        row = browser.locator("#partitions tbody tr").nth(1)
        await shown(browser, "#partitions tbody tr", "two")
        cells = await row.locator("td, th").all_inner_texts()
        await browser.locator("#picture").focus()
        await browser.keyboard.press("ArrowDown")
        spoken = await shown(browser, "#cursor-text", "partition 1 at")

        assert "Partition 0 has made no progress" in finding
        assert f"{COUNT - 10} events wait" in finding
        assert (cells[0], cells[2]) == ("1", "two")
        assert "two, since" in await spoken.inner_text()
        assert await browser.locator("#selection").is_hidden()
        assert await browser.locator("#mode").inner_text() == "read-only"


@pytest.mark.long
async def test_a_former_owner_stays_in_the_legend_as_long_as_in_the_picture(records, start_page):
    """Its colour could not be read otherwise."""
    await records.write()
    async with looking_at(f"{start_page().origin}/") as browser:
        await shown(browser, "#legend button", "one")
        await records.take_over("0", owner_id="two", former_id="one")
        gone = await shown(browser, "#legend button[data-state=gone]", "one")
        colour = await gone.locator(".dot").evaluate("(e) => getComputedStyle(e).backgroundColor")
        members = await browser.locator("#members tbody th").all_inner_texts()

        assert members == ["two"]
        assert await rgb_of(browser, colour) != await owner_colour(browser, "two")


@pytest.mark.long
@pytest.mark.parametrize("width", [1360, 390])
async def test_a_long_owner_id_does_not_widen_the_page(records, start_page, width):
    """It is cut, and shown in full when it is pointed at."""
    owner_id = "pod-" + "x" * 800
    await records.write(owner_id=owner_id, partitions=("0", "1"))
    page = start_page("--stuck-after", "0.5s")
    async with looking_at(f"{page.origin}/", width=width) as browser:
        await shown(browser, ".finding", "no progress")
        name = await shown(browser, "#partitions .name", "pod-")
        await browser.locator("#spans summary").click()
        inside, outside = await browser.evaluate(
            "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )

        assert inside <= outside
        assert await name.get_attribute("title") == owner_id


async def test_checkpoints_are_moved_on_the_page(records, start_page):
    """Selected, shown, confirmed; the token is in no address any more."""
    await records.write()
    page = start_page("--allow-changes")
    async with looking_at(f"{page.origin}/#token={page.token}") as browser:
        await browser.get_by_label("Select partition 0").check()
        await browser.get_by_role("button", name="Move checkpoints (1)").click()
        await browser.get_by_label("Next event to deliver").select_option("back")
        await browser.get_by_label("How many events back").fill("4")
        await browser.get_by_role("button", name="Show what changes").click()
        await shown(browser, "#change-plan td", "4 again")
        before = await records.positions()
        await browser.get_by_role("button", name="Move 1 checkpoint").click()
        await shown(browser, "#change-plan", "1 checkpoint moved")
        await shown(browser, "#log li", "An operator wrote the checkpoint of partition 0")
        await browser.keyboard.press("Escape")

        assert await browser.locator("#change").is_hidden()
        assert page.token not in browser.url
    assert before == {"0": 9}
    assert await records.positions() == {"0": 5}


@pytest.mark.long
async def test_a_partition_is_paused_and_resumed_on_the_page(records, start_page):
    """Selected, asked for a reason, shown, confirmed; the page then says that it is paused."""
    await records.write()
    page = start_page("--allow-changes")
    async with looking_at(f"{page.origin}/#token={page.token}") as browser:
        await browser.get_by_label("Select partition 0").check()
        await browser.get_by_role("button", name="Pause (1)").click()
        await browser.get_by_label("Reason").fill("a wrong price")
        await browser.get_by_role("button", name="Show what changes").click()
        await shown(browser, "#change-plan", "until you resume")
        assert await records.pauses() == {}
        await browser.get_by_role("button", name="Pause 1 partition").click()
        await shown(browser, "#change-plan", "Paused: 0")
        await browser.keyboard.press("Escape")
        await shown(browser, "#findings", "a wrong price")
        await shown(browser, "#partitions tbody", "paused")

        await browser.get_by_role("button", name="Resume (1)").click()
        assert await browser.get_by_label("Reason").is_hidden()
        await browser.get_by_role("button", name="Show what changes").click()
        await browser.get_by_role("button", name="Resume 1 partition").click()
        await shown(browser, "#change-plan", "Resumed: 0")
    assert await records.pauses() == {}


@pytest.mark.long
async def test_the_whole_group_is_paused_and_resumed_on_the_page(records, start_page):
    """No partition has to be selected; only a paused group can be resumed."""
    await records.write(partitions=("0", "1", "2", "3"))
    page = start_page("--allow-changes")
    async with looking_at(f"{page.origin}/#token={page.token}") as browser:
        await browser.get_by_role("button", name="Pause the group…").click()
        assert await browser.locator("#change-what").inner_text() == "The whole group"
        await browser.get_by_label("Reason").fill("the database moves")
        await browser.get_by_role("button", name="Show what changes").click()
        await shown(browser, "#change-plan", "until you resume")
        assert await browser.get_by_role("button", name="Resume the group").count() == 0
        assert await records.pauses() == {}
        await browser.get_by_role("button", name="Pause the group", exact=True).click()
        await shown(browser, "#change-plan", "Paused: the whole group")
        assert await records.pauses() == {"group": "the database moves"}
        await browser.keyboard.press("Escape")
        await shown(browser, "#findings", "the database moves")

        await browser.get_by_role("button", name="Resume the group…").click()
        await browser.get_by_role("button", name="Show what changes").click()
        await browser.get_by_role("button", name="Resume the group", exact=True).click()
        await shown(browser, "#change-plan", "Resumed: the whole group")
    assert await records.pauses() == {}


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1360, 390])
async def test_texts_can_be_read_in_both_themes(records, start_page, scheme, width):
    """A contrast of at least 4.5 to 1; and the page is no wider than the window."""
    await records.write(partitions=("0", "1", "2"))
    page = start_page("--stuck-after", "0.5s", "--allow-changes")
    async with looking_at(
        f"{page.origin}/#token={page.token}", scheme=scheme, width=width
    ) as browser:
        await shown(browser, "#headline", "is stuck")
        pairs = await browser.evaluate(TEXTS)
        poor = []
        for text, front, back in pairs:
            ratio = contrast(await rgb_of(browser, front), await rgb_of(browser, back))
            if ratio < 4.5:
                poor.append((text, round(ratio, 2), front, back))
        overflow = await browser.evaluate("document.documentElement.scrollWidth - innerWidth")

    assert len(pairs) > 30
    assert poor == []
    assert overflow <= 0


def contrast(one, other):
    """Return the contrast of two colours, by WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    """Return the relative luminance of a colour."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (v / 255 for v in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.long
async def test_everything_can_be_reached_with_the_keyboard(records, start_page):
    """The theme, the window, members, the log, columns; each with a visible focus and a name."""
    await records.write()
    page = start_page()
    async with looking_at(f"{page.origin}/") as browser:
        await shown(browser, "#partitions tbody tr", "one")
        await records.write(owner_id="two", partitions=("1",))
        await shown(browser, "#log li", "two joined")
        names = []
        for _ in range(60):
            await browser.keyboard.press("Tab")
            name, outline = await browser.evaluate(
                """() => {
                    const e = document.activeElement;
                    if (e === document.body) return ["", ""];
                    return [e.getAttribute("aria-label") ?? e.getAttribute("aria-labelledby")
                        ?? e.closest("label")?.innerText ?? e.innerText,
                        getComputedStyle(e).outlineStyle];
                }"""
            )
            if not outline:
                break  # It went round.
            names.append(name)
            assert outline != "none", name
        await browser.locator("#theme").press("Enter")
        theme = await browser.evaluate("document.documentElement.dataset.theme")

    assert all(names)
    for wanted in ("Colours: as the system", "15 min", "one", "members-title", "log-title"):
        assert wanted in names
    assert any("Waiting" in name for name in names)
    assert theme == "light"


@pytest.mark.long
async def test_the_page_comes_back_after_the_command_was_restarted(records, start_page):
    """It says that it is not connected, and then shows the state of the new one."""
    await records.write()
    page = start_page()
    port = page.origin.rpartition(":")[2]
    async with looking_at(f"{page.origin}/") as browser:
        await shown(browser, "#live-text", "live")
        page.process.terminate()
        await asyncio.to_thread(page.process.wait, 30)
        await shown(browser, "#live-text", "not connected")
        await records.write(owner_id="two", partitions=("1",))
        start_page("--http", port)
        await shown(browser, "#live-text", "live")
        await shown(browser, "#partitions tbody tr", "two")
