"""When each queue belongs to the pod that should have it."""

import pytest

from eventproc.cli.demo.rabbitmq.scene import is_settled


@pytest.mark.parametrize(
    ("owners", "replicas", "there", "expected"),
    [
        ("000111", 2, "01", True),
        ("001011", 2, "01", False),
        ("00011-", 2, "01", False),
        ("0001122", 3, "012", True),
        ("0011222", 3, "012", False),
        ("000000", 2, "0", True),
        ("000111", 2, "0", False),
        ("001", 3, "012", False),
        ("0", 1, "0", True),
    ],
)
def test_each_pod_has_its_block_and_what_absent_pods_would_have_belongs_to_others(
    owners, replicas, there, expected
):
    """The first pods have one queue more if the blocks cannot be of one size."""
    named = {str(q): None if n == "-" else f"consumer-{n}" for q, n in enumerate(owners)}

    assert is_settled(named, replicas, {f"consumer-{n}" for n in there}) is expected
