"""A recipe for Spark's Python workers: a hub with its Capture files, from the shared folder."""

import os
from pathlib import Path

from eventproc.sources.capture import CapturedHub, FolderCaptureFiles
from eventproc.sources.eventhubs import EventHubOptions, EventHubSource


def source(options: EventHubOptions) -> CapturedHub:
    """Make the source."""
    folder = Path(os.environ["EVENTPROC_TEST_FOLDER"])
    live = EventHubSource.from_connection_string((folder / "hub").read_text(), options=options)
    return CapturedHub(live, FolderCaptureFiles(folder / "captured"))
