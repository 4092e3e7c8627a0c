"""Every number once and in order over the seam, whatever happens to consumers and files."""

import pytest

from tests.integration.capture.storm import Storm


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_no_event_is_lost_between_the_files_and_the_hub(tmp_path):
    """A million events, of which the hub keeps a twelfth."""
    storm = Storm(tmp_path, 1_000_000, seed=7)
    await storm.run()

    assert list(storm.ends()) == [250_000] * 4
    # After each end of a process, no more than what had no checkpoint comes again.
    assert storm.repeated() < (storm.kill_count + storm.mischief_count + 1) * 4 * 5_000
