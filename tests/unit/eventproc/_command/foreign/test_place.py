"""How ``KIND:PLACE?NAME=VALUE`` is read."""

from eventproc._command.foreign.place import parse_place


def test_settings_may_have_escaped_characters():
    """An ampersand would begin the next setting; the place stays as it is."""
    kinds = {"functions": ("namespace", "group")}
    place = parse_place("--from", "functions:a%20b?group=a%26b&namespace=n", kinds)

    assert (place.kind, place.name) == ("functions", "a%20b")
    assert place.settings == {"group": "a&b", "namespace": "n"}
