"""The metadata of a trigger says how many processes a pod has."""

import pytest

from eventproc import ConfigurationError
from eventproc.autoscaling.keda import COUNT_MAX, processes_per_pod


@pytest.mark.parametrize(
    ("metadata", "count"),
    [
        ({}, 1),
        ({"scalerAddress": "scale:6000"}, 1),
        ({"processesPerPod": "1"}, 1),
        ({"processesPerPod": "4"}, 4),
        ({"processesPerPod": str(COUNT_MAX)}, COUNT_MAX),
    ],
)
def test_a_pod_has_as_many_processes_as_its_trigger_says(metadata, count):
    """Without the setting, one."""
    assert processes_per_pod(metadata) == count


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "four", " 2", "²", str(COUNT_MAX + 1)])
def test_another_value_is_refused(text):
    """A target of 0 would ask for endless pods; the message names the setting and its value."""
    with pytest.raises(ConfigurationError, match=r"processesPerPod is .* --workers N"):
        processes_per_pod({"processesPerPod": text})
