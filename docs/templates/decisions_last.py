"""A hook of MkDocs: the search finds the pages of decisions last."""

BOOST = 0.05
"""What the score of a decision is multiplied by: the word of a title is worth more than this."""


def on_page_markdown(markdown, *, page, **_):  # noqa: ANN001, ANN003, ANN201 - types are MkDocs'
    """Give each decision its weight in the search."""
    if page.file.src_uri.startswith("docs/decisions/"):
        page.meta.setdefault("search", {})["boost"] = BOOST
    return markdown
