"""Any text can name a resource: in the store it is quoted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpointstores._fields import require_partition_id
from eventproc._group.resources.names import Resources, id_of, name_of
from eventproc.errors import ConfigurationError, SourceUnavailableError

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(texts)
def test_an_id_can_be_part_of_any_key_and_gives_the_name_back(name):
    """Slashes, blanks, dots, control characters, emoji."""
    assert name_of(require_partition_id(id_of(name))) == name


@given(texts, texts)
def test_different_names_have_different_ids(one, other):
    """Also if they differ only in case or in quoting."""
    assert (id_of(one) == id_of(other)) is (one == other)


def test_usual_names_stay_readable():
    """In the store, as in ``status``."""
    assert id_of("licence-17.emea_1") == "licence-17.emea_1"


@pytest.mark.parametrize("name", ["", None, 17])
def test_what_is_no_name_is_refused(name):
    """The function that lists the resources is the user's; the message shows what it gave."""
    with pytest.raises(ConfigurationError, match=f"is {name!r}: give a text"):
        id_of(name)


async def test_a_text_is_no_list_of_names():
    """Its letters would be taken for names, also if the function for the names returns it."""

    async def names():
        return "emea"

    with pytest.raises(ConfigurationError, match="names is the text 'emea'"):
        Resources("emea")
    with pytest.raises(SourceUnavailableError, match="names is the text 'emea'"):
        await Resources(names).ids()
