"""Which blobs are letters."""

import pytest

from eventproc.dead_letters.blob import _is_letter


@pytest.mark.parametrize(
    ("name", "is_letter"),
    [
        ("dead-letters/n/h/g/0/0000000000000000042.json", True),
        ("dead-letters/n/h/g/0/0000000000000000042_20260131T021407Z.json", True),
        ("dead-letters/n/h/g/0/0000000000000000042_copy.json", False),
        ("dead-letters/n/h/g/0/notes.json", False),
        ("dead-letters/n/h/g/0/42.txt", False),
        ("dead-letters/n/h/g/0/42", False),
        ("dead-letters/n/h/g/0/", False),
    ],
)
def test_blobs_with_other_names_beside_letters_are_none(name, is_letter):
    assert _is_letter(name) is is_letter
