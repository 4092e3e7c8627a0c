"""The names of Capture files: where those of one partition and one day are, and their order. Pure.

Azure puts the values of nine placeholders into a format that the user chose, and adds ``.avro``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from eventproc._base.network import is_ip_address
from eventproc.errors import ConfigurationError

DEFAULT_FORMAT: Final = (
    "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
)

SUFFIX: Final = ".avro"
_TIMES: Final = ("Year", "Month", "Day", "Hour", "Minute", "Second")
_NEEDED: Final = ("PartitionId", *_TIMES)
_PLACEHOLDER: Final = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True, slots=True, order=True)
class CapturedFile:
    """A file, in the order of its partition's events."""

    at: datetime
    """When its window ended, by its name."""

    name: str
    byte_count: int


def namespace_in_names(fully_qualified_namespace: str) -> str:
    """Return what stands for ``{Namespace}``: the first part of the host's name."""
    host = fully_qualified_namespace.partition(":")[0]
    return host if is_ip_address(host) else host.partition(".")[0]


def check_format(name_format: str) -> str:
    """Return the format without ``.avro``.

    Raises:
        ConfigurationError: A placeholder is missing, unknown, given twice, or where the files of a
            partition could be found only by listing all others.
    """
    text = name_format.removesuffix(SUFFIX)
    names = _PLACEHOLDER.findall(text)
    known = ("Namespace", "EventHub", *_NEEDED)
    for name in names:
        if name not in known:
            choices = " ".join(f"{{{each}}}" for each in known)
            raise _refused(name_format, f"there is no placeholder {{{name}}}: use {choices}")
        if names.count(name) > 1:
            raise _refused(name_format, f"{{{name}}} is there twice: give it once")
    for name in _NEEDED:
        if name not in names:
            raise _refused(name_format, f"it lacks {{{name}}}, which tells files apart: add it")
    last = max(map(names.index, ("PartitionId", "Year", "Month", "Day")))
    if min(names.index("Minute"), names.index("Second")) < last:
        raise _refused(
            name_format,
            "{Minute} and {Second} must come after {PartitionId}, {Year}, {Month} and {Day}: "
            "otherwise every file would have to be listed again and again",
        )
    return text


def _refused(name_format: str, why: str) -> ConfigurationError:
    return ConfigurationError(why, setting="name_format", value=repr(name_format))


class FileNames:
    """The names of the files of one hub."""

    def __init__(self, name_format: str, namespace: str, eventhub: str) -> None:
        """Use a format that ``check_format`` returned."""
        self._hub = {"Namespace": namespace, "EventHub": eventhub}
        self._parts = _PLACEHOLDER.split(name_format)  # Text and name in turn.
        names = self._parts[1::2]
        times = [name for name in names if name in _TIMES]
        self.is_in_order: Final = times[:3] == ["Year", "Month", "Day"]
        """Whether the first name in a listing is the oldest."""

        last = max(map(names.index, ("PartitionId", "Year", "Month", "Day")))
        self._hours: Sequence[int | None] = range(24) if names.index("Hour") < last else (None,)
        self._pattern = re.compile(
            "".join(
                (self._group(part) if place % 2 else re.escape(part))
                for place, part in enumerate(self._parts)
            )
            + re.escape(SUFFIX)
        )

    def _group(self, name: str) -> str:
        if name in self._hub:
            return re.escape(self._hub[name])
        if name == "PartitionId":
            return r"(?P<PartitionId>[^/]+?)"
        return rf"(?P<{name}>[0-9]{{{4 if name == 'Year' else 2}}})"

    def file(self, name: str, byte_count: int) -> tuple[str, CapturedFile] | None:
        """Return the partition id of a name and the file; ``None`` if it is no file of the hub."""
        match = self._pattern.fullmatch(name)
        if match is None:
            return None
        try:
            at = datetime(*(int(match[part]) for part in _TIMES), tzinfo=UTC)  # type: ignore[misc,arg-type]
        except ValueError:
            return None
        return match["PartitionId"], CapturedFile(at, name, byte_count)

    def name(self, partition_id: str, at: datetime) -> str:
        """Return the name of the file of a partition whose window ended at a time."""
        values = {"PartitionId": partition_id, **_times_of(at), "Hour": f"{at:%H}"}
        return self._prefix({**values, "Minute": f"{at:%M}", "Second": f"{at:%S}"}) + SUFFIX

    def prefix(self, partition_id: str) -> str:
        """Return what the names of all files of a partition begin with."""
        return self._prefix({"PartitionId": partition_id})

    def month_prefix(self, partition_id: str, day: date) -> str:
        """Return what names of a partition's files of a month begin with."""
        year, month = f"{day:%Y}", f"{day:%m}"
        return self._prefix({"PartitionId": partition_id, "Year": year, "Month": month})

    def prefixes(self, partition_id: str, day: date) -> Iterable[str]:
        """Return what names of a partition's files of one day begin with, in order."""
        known = {"PartitionId": partition_id, **_times_of(day)}
        for hour in self._hours:
            yield self._prefix(known if hour is None else {**known, "Hour": f"{hour:02}"})

    def _prefix(self, known: Mapping[str, str]) -> str:
        """Return the name up to the first value that is not known."""
        values = {**self._hub, **known}
        found = self._parts[0]
        for name, text in zip(self._parts[1::2], self._parts[2::2], strict=True):
            if name not in values:
                break
            found += values[name] + text
        return found


def _times_of(day: date) -> dict[str, str]:
    return {"Year": f"{day:%Y}", "Month": f"{day:%m}", "Day": f"{day:%d}"}
