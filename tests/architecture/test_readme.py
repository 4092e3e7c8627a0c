"""The README as a package index shows it."""

import re
import tomllib


def test_no_link_of_the_readme_is_relative_on_the_package_index(root):
    """The substitutions in ``pyproject.toml`` leave no relative link, which would lead nowhere
    there."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    original = text = (root / "README.md").read_text("utf-8")
    for each in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)

    assert relative_links_in(original) != []
    assert relative_links_in(text) == []


def relative_links_in(text):
    """Return the targets of links that are not URLs, in either form of Markdown."""
    inline = re.findall(r"\]\((?!https?://)([^)]*)\)", text)
    defined = re.findall(r"^\[[^\]]+\]: (?!https?://)(\S+)", text, re.MULTILINE)
    return [*inline, *defined, *re.findall(r"\]\[([^\]]+)\]", text)]
