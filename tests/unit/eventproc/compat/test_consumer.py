"""The calls of ``receive`` of one client."""

import pytest

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


def test_a_call_for_all_partitions_and_one_for_a_partition_exclude_each_other():
    """Two calls for two partitions do not."""
    registry = Registry("$Default")
    with registry.receiving("0"), registry.receiving("1"):
        for partition_id in ("0", None):
            with (
                pytest.raises(ValueError, match="already receiving"),
                registry.receiving(partition_id),
            ):
                pass
    with (
        registry.receiving(None),
        pytest.raises(ValueError, match="from all partitions"),
        registry.receiving("0"),
    ):
        pass
