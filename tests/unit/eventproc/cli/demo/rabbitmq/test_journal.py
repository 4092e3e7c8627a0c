"""Journals of calls: each is read once, whatever a killed process left half-written."""

import os

from eventproc.cli.demo.rabbitmq.journal import Call, CallReader, CallWriter


def test_each_call_is_read_once_with_its_process_and_its_orders(tmp_path):
    """In order; the process is named by its pod and its process id."""
    reader, writer = CallReader(tmp_path), CallWriter(tmp_path, "consumer-0")
    writer.enter("3")
    before = reader.read()
    [open_call] = reader.calls
    writer.leave("3", [("c", 7), ("d", 0)])
    writer.enter("3")
    writer.leave("3", [])
    first, again = reader.read(), reader.read()
    writer.close()

    assert before == again == []
    assert (open_call.left_ns, open_call.orders) == (None, ())
    assert [call.orders for call in first] == [(("c", 7), ("d", 0)), ()]
    assert {call.writer for call in first} == {f"consumer-0.{os.getpid()}"}
    assert all(call.entered_ns <= (call.left_ns or 0) for call in first)
    assert reader.calls == first


def test_calls_of_two_queues_may_be_under_way_at_the_same_time(tmp_path):
    """A call ends where it began."""
    reader, writer = CallReader(tmp_path), CallWriter(tmp_path, "consumer-0")
    writer.enter("1")
    writer.enter("2")
    writer.leave("1", [("c", 1)])
    writer.close()
    [ended] = reader.read()

    assert (ended.queue, ended.orders) == ("1", (("c", 1),))
    assert [call.queue for call in reader.calls] == ["1", "2"]


def test_a_line_that_was_cut_off_is_read_when_it_is_whole(tmp_path):
    """A process may be killed while it writes one."""
    path = tmp_path / "consumer-0.17.calls"
    path.write_text("> 3 10\n< 3 20 c:1 c:")
    reader = CallReader(tmp_path)
    before = reader.read()
    with path.open("a") as file:
        file.write("2\n")

    assert before == []
    assert reader.read() == [
        Call(
            writer="consumer-0.17",
            queue="3",
            entered_ns=10,
            left_ns=20,
            orders=(("c", 1), ("c", 2)),
        )
    ]
