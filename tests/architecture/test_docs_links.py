"""Links and paths in the documentation lead somewhere. Nothing is built, no server is asked."""

import re
import tomllib
from collections import Counter

import pytest

FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
INLINE = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\))?)(?: +\"[^\"]*\")?\)")
DEFINITION = re.compile(r"^ {0,3}\[([^\]]+)\]: *(\S+)", re.MULTILINE)
USE = re.compile(r"\[[^\]]*\]\[([^\]]+)\]")
PAGE = re.compile(r"docs/[\w./-]+\.md\b")
SELECTION = re.compile(r"((?:tests/\S+\.py )+)-k (?:\"([^\"]+)\"|(\w+))")
PATH = re.compile(
    r"(?<![\w./:{}-])(?:tests|examples|benchmarks|checkpointstores|spark_integration|_[a-z]+"
    r"|eventproc(?=/[a-z_/]*(?:\.py|_[a-z]+/)))/[a-z0-9_./-]*[a-z0-9_]"
)
SOURCES = (
    *("eventproc", "checkpointstores", "spark_integration"),
    *("bootstrap", "benchmarks", "examples", "tests"),
)
FOLDERS = ("", "eventproc", "spark_integration")
"""What paths in pages are relative to."""


def pages_below(root):
    """Return every Markdown page of the project."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def prose(text):
    """Return a page without its code and comments."""
    return COMMENT.sub("", FENCE.sub("", text))


def anchors(text):
    """Return the fragments that GitHub gives to the headings of a page."""
    found: set[str] = set()
    count_by_slug = Counter[str]()
    for heading in HEADING.findall(prose(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(f"{slug}-{count_by_slug[slug]}" if count_by_slug[slug] else slug)
        count_by_slug[slug] += 1
    return found


def links(text):
    """Return the targets of all links of a page; a reference without a definition is one, too."""
    plain = CODE.sub("", prose(text))
    defined = {name.casefold(): target for name, target in DEFINITION.findall(plain)}
    used = [defined.get(name.casefold(), f"[{name}]") for name in USE.findall(plain)]
    return [*INLINE.findall(plain), *defined.values(), *used]


def is_dead(page, target):
    """Tell whether a link from a page leads nowhere; other servers are not asked."""
    if re.match(r"[a-z]+:", target):
        return False
    path, _, fragment = target.partition("#")
    there = page.parent / path if path else page
    if not there.exists():
        return True
    return bool(fragment) and fragment not in anchors(there.read_text("utf-8"))


def test_every_link_leads_somewhere(root):
    """A relative link names a file of the project, and its fragment a heading in it."""
    dead = [
        f"{page.relative_to(root)}: {target}"
        for page in pages_below(root)
        for target in links(page.read_text("utf-8"))
        if is_dead(page, target)
    ]

    assert dead == []


def test_every_path_in_a_page_exists(root):
    """Files and folders of the product, tests, examples and benchmarks that a page names exist."""
    gone = sorted(
        {
            f"{page.relative_to(root)}: {path}"
            for page in pages_below(root)
            for path in PATH.findall(page.read_text("utf-8"))
            if not any((root / folder / path).exists() for folder in FOLDERS)
        }
    )

    assert gone == []


def test_every_documented_selection_selects_tests(root):
    """Each word after ``-k`` is part of the name of a test in the files before it."""
    selections = [
        (page.relative_to(root), match[1].split(), word)
        for page in pages_below(root)
        for match in SELECTION.finditer(page.read_text("utf-8"))
        for word in (match[2] or match[3]).split(" or ")
    ]
    empty = [
        f"{page}: {word}"
        for page, paths, word in selections
        if not any(re.search(rf"def test_\w*{word}", (root / p).read_text("utf-8")) for p in paths)
    ]

    assert len(selections) > 10
    assert empty == []


def test_every_page_that_the_source_names_exists(root):
    """Pages named in docstrings, comments, ``pyproject.toml`` and the Makefile exist."""
    sources = [file for folder in SOURCES for file in (root / folder).rglob("*.py")]
    gone = sorted(
        {
            f"{file.relative_to(root)}: {page}"
            for file in (*sources, root / "pyproject.toml", root / "Makefile")
            for page in PAGE.findall(file.read_text("utf-8"))
            if not (root / page).exists()
        }
    )

    assert gone == []


def test_the_index_of_decisions_is_complete(root):
    """Each decision is in the index once, under its title."""
    folder = root / "docs/decisions"
    index = (folder / "README.md").read_text("utf-8")
    listed = re.findall(r"^- \[(\d{4})\]\(\1-.+\.md\): (.+)$", index, re.MULTILINE)
    titles = [
        tuple(page.read_text("utf-8").split("\n", 1)[0].removeprefix("# ").split(": ", 1))
        for page in sorted(folder.glob("0*.md"))
    ]

    assert sorted(listed) == titles


def test_the_readme_has_absolute_links_once_the_project_has_a_url(root):
    """A package index shows the README alone, so relative links lead nowhere there."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    relative = [
        target
        for target in links((root / "README.md").read_text("utf-8"))
        if not re.match(r"https://|#", target)
    ]

    assert not relative or "urls" not in project


@pytest.fixture(name="page")
def _page(tmp_path):
    (tmp_path / "other.md").write_text("# Some `code`, twice\n\n## Again\n\n## Again\n")
    return tmp_path / "page.md"


@pytest.mark.parametrize(
    "target", ["other.md", "other.md#some-code-twice", "other.md#again-1", "https://example.org"]
)
def test_the_check_accepts_links_that_work(page, target):
    """Links to files, headings with code, repeated headings and other servers are not dead."""
    page.write_text("")

    assert not is_dead(page, target)


@pytest.mark.parametrize("target", ["none.md", "other.md#none", "#none", "[none]"])
def test_the_check_finds_dead_links(page, target):
    """A missing file, a missing heading there or here, and an undefined reference are dead."""
    page.write_text("# Here\n")

    assert is_dead(page, target)


def test_the_check_reads_links_of_every_kind():
    """Images, definitions and references are links; text in code and comments is not."""
    text = (
        "[a](a.md) `[b](b.md)` ![c](c.png) [d][e]\n<!-- [f](f.md) -->\n"
        "```\n[g](g.md)\n```\n[e]: e.md\n[h][i]\n"
    )

    assert links(text) == ["a.md", "c.png", "e.md", "e.md", "[i]"]
