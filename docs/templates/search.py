"""A hook of MkDocs: the search finds guides first, then the API, and decisions last."""

BOOSTS = {"docs/decisions/": 0.02, "docs/api/": 0.3}
"""What the scores of the pages in a folder are multiplied by."""


def on_page_markdown(markdown, *, page, **_):  # noqa: ANN001, ANN003, ANN201 - types are MkDocs'
    """Give each page its weight in the search."""
    for folder, boost in BOOSTS.items():
        if page.file.src_uri.startswith(folder):
            page.meta.setdefault("search", {})["boost"] = boost
    return markdown
