"""A real Chromium that looks at a page."""

import os
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

ROOT = Path(__file__).parents[3]
OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
AS_ROOT = ("--no-sandbox",)
WAIT_MS = 60_000


def chromium():
    """Return the path of Chromium; skips the test if there is none."""
    fetched = ROOT / ".tools/chromium/chromium"
    found = str(fetched) if fetched.exists() else shutil.which("chromium")
    if found is None:
        pytest.skip("there is no Chromium: `bootstrap/chromium.sh` says why")
    return found


@asynccontextmanager
async def looking_at(url, *, scheme="light", width=1360, height=900):
    """Yield a page of Chromium; afterwards there must have been no error and no foreign request."""
    errors, requests = [], []

    def note(message):
        # A page whose server was stopped tries again and again.
        if message.type == "error" and "net::ERR_" not in message.text:
            errors.append(message.text)

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=chromium(), args=[*OPTIONS, *(AS_ROOT if os.getuid() == 0 else ())]
        )
        try:
            page = await browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=scheme
            )
            page.set_default_timeout(WAIT_MS)
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", note)
            page.on("request", lambda request: requests.append(request.url))
            await page.goto(url)
            yield page
        finally:
            await browser.close()
    origin = url.partition("/#")[0].rstrip("/")
    assert errors == []
    assert [asked for asked in requests if not asked.startswith((origin, "data:"))] == []


async def shown(page, selector, text):
    """Wait until an element that fits shows a text; return it."""
    found = page.locator(selector).filter(has_text=text).first
    await found.wait_for()
    return found


async def rgb_of(page, css):
    """Return a colour of CSS as red, green and blue."""
    return await page.evaluate(
        """(css) => {
            const pen = new OffscreenCanvas(1, 1).getContext("2d");
            pen.fillStyle = css;
            pen.fillRect(0, 0, 1, 1);
            return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
        }""",
        css,
    )


async def owner_colour(page, owner_id):
    """Return the colour of a member, as its row in the table of members has it."""
    dot = (await shown(page, "#members tbody th", owner_id)).locator(".dot")
    return await rgb_of(page, await dot.evaluate("(e) => getComputedStyle(e).backgroundColor"))


async def until_pictured(page, row, count, colour):
    """Wait until the right end of a row of the picture, that is, now, has this colour."""
    await page.wait_for_function(
        """([row, count, colour]) => {
            const canvas = document.getElementById("picture");
            const ratio = canvas.width / canvas.clientWidth;
            const x = canvas.clientWidth - (canvas.clientWidth < 620 ? 8 : 108) - 3;
            const y = 34 + ((row + 0.5) * (canvas.clientHeight - 34 - 22)) / count;
            const found = canvas.getContext("2d")
                .getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data;
            return colour.every((value, i) => Math.abs(value - found[i]) <= 4);
        }""",
        arg=[row, count, colour],
    )
