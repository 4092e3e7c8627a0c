"""Requests to the control endpoint: each gives valid values, or an error of one sentence."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.emulator._control import MalformedRequestError, Parameters

MESSAGE_MAX = 300

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**60), 10**60)
    | st.floats()
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
READS = {
    "text": lambda given: given.text("p"),
    "required_text": lambda given: given.required_text("p"),
    "whole_number": lambda given: given.whole_number("p", least=0, most=9),
    "duration": lambda given: given.duration("p"),
}


def is_within_bounds(read, found):
    """Whether the value is one that this method may return."""
    match read:
        case "whole_number":
            return type(found) is int and 0 <= found <= 9
        case "duration":
            return timedelta(0) <= found <= timedelta(days=366)
        case "text":
            return found is None or isinstance(found, str)
        case _:
            return isinstance(found, str)


@pytest.mark.parametrize("read", READS)
@given(body=st.binary() | values.map(json.dumps).map(str.encode), value=values)
def test_any_body_gives_valid_values_or_a_short_error(read, body, value):
    """No other error is raised."""
    for sent in (body, json.dumps({"p": value}).encode()):
        found, refusal = None, ""
        try:
            found = READS[read](Parameters.parse(sent))
        except MalformedRequestError as error:
            refusal = str(error)

        assert len(refusal) <= MESSAGE_MAX
        assert refusal or is_within_bounds(read, found)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[" * 40_000, "nested more than 100 deep"),
        (b'{"p": ' + b"[" * 40_000 + b"]" * 40_000 + b"}", "nested more than 100 deep"),
        (b'{"p": NaN}', "NaN is not a finite number"),
        (b'{"p": -Infinity}', "Infinity is not a finite number"),
        (b'{"p": 1e400}', "1e400 is not a finite number"),
        (b'{"p": 1e300}', "seconds from 0 to"),
        (b'{"p": -1}', "seconds from 0 to"),
        (b'{"p": true}', "give a number"),
        (b'{"p": ' + b"9" * 5_000 + b"}", "is not JSON"),
        (b"{}", "p is missing"),
        (b"\xff", "is not JSON"),
        (b"null", "a JSON object"),
    ],
)
def test_an_invalid_duration_is_refused(body, message):
    """The message says what may be given."""
    with pytest.raises(MalformedRequestError, match=message):
        Parameters.parse(body).duration("p")


def test_an_unknown_parameter_is_refused():
    """Ignoring a misspelt one would apply the fault to everything."""
    with pytest.raises(
        MalformedRequestError, match="'hubs' is not a parameter here; there are: hub"
    ):
        Parameters.parse(b'{"hubs": "orders"}').refuse_others(["hub"])
