"""Read a hub together with its Capture files, which ``--capture`` names."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from eventproc._command.arguments.access import StorageAccess
from eventproc._core.option_values import parse_time
from eventproc.errors import ConfigurationError
from eventproc.ports import EventSource

_FORMS = (
    "blob:CONTAINER or folder:PATH, for example blob:captured. Settings may follow a question "
    "mark, with & between them: format=NAMES, since=TIME, lost=skip"
)


def with_capture(live: EventSource, spec: str, storage: StorageAccess) -> EventSource:
    """Make the source that reads Capture files before the hub; *spec* is as ``_FORMS`` says.

    Raises:
        ConfigurationError: The option has another form, or the storage account is missing.
    """
    from eventproc.sources.capture import (  # noqa: PLC0415 - it is an extra
        BlobCaptureFiles,
        CapturedHub,
        FolderCaptureFiles,
    )

    kind, _, rest = spec.partition(":")
    place, _, query = rest.partition("?")
    if kind not in {"blob", "folder"} or not place:
        raise ConfigurationError(f"--capture is {spec!r}: give {_FORMS}")
    settings: dict[str, Any] = {}
    skips_lost = False
    for part in filter(None, query.split("&")):
        name, _, text = part.partition("=")
        value = unquote(text)
        if name == "format" and value:
            settings["name_format"] = value
        elif name == "since":
            settings["since"] = parse_time(
                "--capture ...?since", value, "a time, for example 2026-01-31T08:00:00Z"
            )
        elif (name, value) == ("lost", "skip"):
            skips_lost = True
        else:
            raise ConfigurationError(f"--capture has {part!r} after its question mark: {_FORMS}")
    if kind == "folder":
        files = FolderCaptureFiles(Path(place).expanduser(), **settings)
        return CapturedHub(live, files, skips_lost=skips_lost)
    container = storage.in_account(BlobCaptureFiles, place, "--capture blob:CONTAINER", **settings)
    return CapturedHub(live, container, skips_lost=skips_lost)
