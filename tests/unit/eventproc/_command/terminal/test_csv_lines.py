"""Rows as CSV."""

import csv
import io

from hypothesis import example, given
from hypothesis import strategies as st

from eventproc._command.terminal.console import csv_lines


def test_values_that_are_no_text_are_json_and_none_is_empty():
    """So true and a list can be read by whatever reads JSON."""
    rows = [{"a": True, "b": None, "c": [[1, 2]], "d": 1.5}]

    assert csv_lines(rows, "abcd") == 'a,b,c,d\ntrue,,"[[1, 2]]",1.5\n'


@example([{"a": "\r", "b": ""}])
@given(st.lists(st.fixed_dictionaries({"a": st.text(), "b": st.text()})))
def test_any_text_is_read_back(rows):
    """Commas, quotes and line ends are quoted."""
    text = csv_lines(rows, ("a", "b"))

    assert list(csv.DictReader(io.StringIO(text, newline=""))) == rows
