"""The calls of ``receive`` of one client."""

from eventproc.compat._consumer import Registry


def test_a_close_while_the_processor_is_being_built_ends_the_call():
    """The client for threads takes some milliseconds for that."""
    registry, ends = Registry("$Default"), []
    with registry.receiving(None) as call:
        (ended,) = registry.close()
        call.on_close(lambda: ends.append("end"))
        assert ends == ["end"]
        assert not ended.done()

    assert ended.done()
