"""The demo's journals: each delivery is read once, also where a line was cut off."""

from eventproc._command.demo.journal import JOURNAL_VARIABLE, JournalReader, JournalWriter


def test_each_delivery_is_read_once(tmp_path, monkeypatch):
    """With the name of its process; an event that came twice counts once as handled."""
    monkeypatch.setenv(JOURNAL_VARIABLE, str(tmp_path))
    reader = JournalReader(tmp_path)
    writer = JournalWriter("A")
    writer.note("3", [5, 6])
    reader.read()
    writer.note("3", [6])
    reader.read()
    reader.read()
    writer.close()

    assert reader.deliveries == [("A", ("3", 5)), ("A", ("3", 6)), ("A", ("3", 6))]
    assert reader.handled == {("3", 5), ("3", 6)}


def test_an_incomplete_line_is_read_when_it_is_complete(tmp_path):
    """Its process may be writing, or was killed."""
    path = tmp_path / "A.journal"
    reader = JournalReader(tmp_path)
    path.write_text("0 1 2\n0 3")
    reader.read()
    first = set(reader.handled)
    path.write_text("0 1 2\n0 3 44\n")
    reader.read()

    assert first == {("0", 1), ("0", 2)}
    assert reader.handled == {*first, ("0", 3), ("0", 44)}
