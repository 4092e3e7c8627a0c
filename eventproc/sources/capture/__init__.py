"""Event hubs together with their Capture files, for events that the hub has deleted."""

from eventproc._base import public_names as _public_names
from eventproc._base.extras import needing

with needing("capture"):
    from eventproc.sources.capture._files import (
        BlobCaptureFiles,
        CaptureFiles,
        FolderCaptureFiles,
    )
    from eventproc.sources.capture._source import CapturedHub

__all__ = ["BlobCaptureFiles", "CaptureFiles", "CapturedHub", "FolderCaptureFiles"]

_public_names.set_module(__name__, globals())
