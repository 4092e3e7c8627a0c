"""Every number once and in order over the seam, whatever happens to consumers and files."""

import pytest

from tests.integration.capture.storm import Storm


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(200_000, marks=pytest.mark.long),
        pytest.param(1_000_000, marks=pytest.mark.night),
    ],
)
async def test_no_event_is_lost_between_the_files_and_the_hub(tmp_path, count):
    """The hub keeps a part of them only."""
    storm = Storm(tmp_path, count, seed=7)
    await storm.run()

    assert list(storm.ends()) == [count // 4] * 4
    # After each end of a process, no more than what had no checkpoint comes again.
    assert storm.repeated() < (storm.kill_count + storm.mischief_count + 1) * 4 * 5_000
