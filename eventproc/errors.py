"""Every exception that eventproc raises on purpose.

Each level of the tree answers one question: is it ours, whose fault is it, may I retry?
Losing a race is not here: a claim that another processor won is a result, not an error.
"""

import copyreg
from collections.abc import Mapping
from typing import ClassVar

__all__ = [
    "CommitUnknownError",
    "ConfigurationError",
    "DeadLetterError",
    "DecodeError",
    "DuplicateOwnerError",
    "EventProcError",
    "EventRefusedError",
    "HandlerAbortedError",
    "HandlerCancelledError",
    "HubRecreatedError",
    "LetterDamagedError",
    "LetterRefusedError",
    "MissingExtraError",
    "OwnershipLostError",
    "PositionLostError",
    "PositionUnknownError",
    "ReceiverDisplacedError",
    "RosterUnavailableError",
    "SourceError",
    "SourceRejectedError",
    "SourceUnavailableError",
    "StateRefusedError",
    "StateTooLargeError",
    "StateUnreadableError",
    "StoreCorruptError",
    "StoreError",
    "StoreRejectedError",
    "StoreReplacedError",
    "StoreUnavailableError",
    "SuspectSettingError",
    "TransactionsRefusedError",
]


class EventProcError(Exception):
    """The root: ``except EventProcError`` catches whatever this library raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle text and attributes: constructors have other arguments than ``args``."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class ConfigurationError(EventProcError, ValueError):
    """Something given to the library cannot work; the message names it and the remedy.

    Raised when an object is built or when a processor starts, before anything is claimed;
    never later.

    An error that concerns a setting names it apart from the message, so that a front end with names
    of its own, such as the options of the command, can show those.
    """

    def __init__(
        self,
        message: str = "",
        *,
        setting: str = "",
        value: str = "",
        beside: Mapping[str, str] | None = None,
    ) -> None:
        """Keep what is wrong with the *setting*.

        Args:
            message: The reason and the remedy; without a setting, also what is wrong.
            setting: The setting, if the error concerns one.
            value: Its value as it is to be shown; empty if it must not or need not be.
            beside: The values of other settings that do not fit this one.
        """
        super().__init__()
        self.message = message
        self.setting = setting
        self.value = value
        self.beside = dict(beside or {})
        self.args = (self._text(),)

    def name_settings(self, names: Mapping[str, str]) -> None:
        """Show other names for the settings: those of a front end."""
        self.setting = names.get(self.setting, self.setting)
        self.beside = {names.get(each, each): value for each, value in self.beside.items()}
        self.args = (self._text(),)

    def _text(self) -> str:
        named = [
            f"{name} is {value}" if value else name
            for name, value in {self.setting: self.value, **self.beside}.items()
            if name
        ]
        if not named:
            return self.message
        *others, last = named
        head = f"{', '.join(others)} and {last}" if others else last
        return f"{head}: {self.message}"


class MissingExtraError(ConfigurationError, ModuleNotFoundError):
    """A package of an extra is not installed; the message gives the command to install it."""


class DuplicateOwnerError(ConfigurationError):
    """Another live processor of the group already uses this ``owner_id``.

    Raised by the one that came second. A processor that restarts after a crash under its old
    ``owner_id`` does *not* get this: the old one does not answer.
    """


class StoreError(EventProcError):
    """A checkpoint store could not do what it was asked."""

    is_final: ClassVar[bool] = False
    """Whether a retry fails until an operator has done what the message says."""


class StoreUnavailableError(StoreError):
    """The store did not answer, or answered that it cannot now. Safe to retry.

    A conditional write never raises this: it reports ``WriteOutcome.UNKNOWN``, because whether
    it took effect is exactly what is not known.
    """


class StoreRejectedError(StoreError):
    """The store refuses for good: no container, a credential that is refused or lacks a right.

    The message names the store, what is missing, and the remedy.
    """

    is_final = True


class StoreCorruptError(StoreError):
    """What the store holds is damaged; the message names it and the remedy."""

    is_final = True


class HubRecreatedError(StoreError):
    """A checkpoint is of a hub that was deleted and created again under the same name.

    Its position means nothing in the new hub, so the partition is not served until an operator
    moves the checkpoint. With ``RecreatedHub.EARLIEST`` this is never raised.

    A checkpoint that is older than the hub proves it. If that is not known, the partition ended
    before the position, which has other possible causes; the message names them, too.
    """

    is_final = True

    def __init__(
        self,
        partition_id: str,
        sequence_number: int | None,
        *,
        is_older_than_hub: bool,
        last: int | None = None,
    ) -> None:
        """Name the causes; *last* is the number of the partition's last event, if it is known."""
        number = "" if sequence_number is None else f" {sequence_number}"
        known = f"the checkpoint of partition {partition_id!r}, at event{number}, "
        if is_older_than_hub:
            known += (
                "is older than the hub: this was deleted and created again under the same name, so "
                "its events are other ones"
            )
        else:
            end = "" if last is None else f", where the partition's last event is {last}"
            if last is not None and last < 0:
                end = ", where the partition has had no event yet"
            known += (
                f"does not fit the hub{end}. Possible causes: the hub was deleted and created "
                "again under the same name; the checkpoint was set to a wrong number; or a "
                "fail-over lost the newest events"
            )
        super().__init__(
            f"{known}. To handle the events of the hub from the first, use `eventproc checkpoints "
            f"reset --partition {partition_id} --to earliest`, or give another target. "
            "Processors with the setting recreated_hub=EARLIEST begin at the first by themselves "
            "whenever a hub was created again"
        )


class StoreReplacedError(StoreCorruptError):
    """The place that the store has open is not the one that other processes find any more.

    The SQLite file was deleted, moved or replaced. This ends the processor: otherwise two groups
    would serve the same partitions without knowing of each other.
    """


class SourceError(EventProcError):
    """An event source could not do what it was asked."""

    names_remedy: ClassVar[bool] = False
    """Whether the message says what to do."""

    def __init__(self, message: str = "", *, reference: str = "") -> None:
        """Keep what the service's support asks for, the *reference*, at the end of the message."""
        self._message = message
        self._end = f" (for a support ticket: {reference})" if reference else ""
        super().__init__(message + self._end)

    def with_remedy(self, remedy: str) -> str:
        """Return the message, followed by a remedy unless it names one itself."""
        return f"{self._message}{'' if self.names_remedy else remedy}{self._end}"


class SourceUnavailableError(SourceError):
    """The event source did not answer, or the connection broke. Safe to retry."""


class SuspectSettingError(SourceUnavailableError):
    """No answer, probably because a setting is wrong: an unknown host, a credential without token.

    While a processor runs, this is retried as any other missing answer, because it may pass. At a
    start and for a single command it counts as a wrong setting.
    """


class SourceRejectedError(SourceError):
    """The event source refuses for good: no such hub, consumer group or partition, no right."""


class PositionLostError(SourceRejectedError):
    """Events before the position, which were received, are gone, and others may have their numbers.

    A fail-over lost the newest events of the partition, for example.
    """


class EventRefusedError(SourceError):
    """An event cannot be published as it is: too large, or without a body. A retry cannot help."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        """The place of the event among those of the call, from 0."""


class ReceiverDisplacedError(SourceUnavailableError):
    """Another receiver took the link to this partition.

    A hint that the partition has a new owner, not a proof: only the ownership record decides.
    """


class RosterUnavailableError(EventProcError):
    """A roster did not answer. Safe to retry: until it does, its former answer counts."""


class DeadLetterError(EventProcError):
    """A dead letter is not known to be stored. Safe to retry: it may be stored twice."""


class LetterDamagedError(EventProcError):
    """What is stored as a dead letter cannot be read as one; the message says what is wrong."""


class LetterRefusedError(EventProcError):
    """A dead letter cannot be replayed as it is: the hub refuses its event, or the handler failed.

    It stays where it is.
    """


class OwnershipLostError(EventProcError):
    """This processor no longer owns the partition: stop, and never retry.

    Raised to a handler that asks for a checkpoint after another processor became the owner.
    """

    def __init__(self, partition_id: str) -> None:
        super().__init__(
            f"partition {partition_id!r} is no longer owned by this processor; "
            "its new owner continues from the last stored checkpoint"
        )
        self.partition_id = partition_id


class CommitUnknownError(OwnershipLostError):
    """It is not known whether a transaction was committed: the database did not answer.

    The partition is closed, and begins again at the stored checkpoint, here or at its next owner.
    If the transaction was committed, that checkpoint is behind its events; otherwise they are
    delivered again.
    """

    def __init__(self, partition_id: str) -> None:
        super().__init__(partition_id)
        message = (
            f"it is not known whether the transaction of partition {partition_id!r} was committed; "
            "the partition begins again at the stored checkpoint, which shows it"
        )
        self.args = (message,)


class PositionUnknownError(EventProcError):
    """A transaction was begun before the partition has a position, so none can be stored with it.

    Only before the first event of a partition without a checkpoint whose reading began at a time.
    """

    def __init__(self, partition_id: str) -> None:
        super().__init__(
            f"partition {partition_id!r} has no position yet, so a transaction cannot store one: "
            "use transaction() while handling events"
        )


class TransactionsRefusedError(EventProcError):
    """A handler used ``context.transaction()`` where there is none; the message says why."""


class HandlerCancelledError(EventProcError):
    """A handler or a sink raised ``CancelledError``, although its call was not cancelled.

    It awaited a task or future that was cancelled, or cancelled its own task. Its events are not
    handled.
    """

    def __init__(self, cancellation: BaseException) -> None:
        super().__init__(
            "CancelledError was raised although this call was not cancelled: it awaited a task or "
            "future that was cancelled, or cancelled its own task"
        )
        self.__cause__ = cancellation


class HandlerAbortedError(EventProcError):
    """A handler or a sink raised what is no ``Exception``, such as ``SystemExit``.

    Extension modules do so as well: a panic in Rust is one. It is the failure of a call like any
    other error; the process goes on.
    """

    def __init__(self, error: BaseException) -> None:
        try:
            what = repr(error)
        except Exception:  # noqa: BLE001 - the user's code
            what = type(error).__qualname__
        super().__init__(
            f"{what} was raised, which is not an Exception: the call has failed. Raise an "
            "Exception for a failure; to stop the processor, call its stop()"
        )
        self.__cause__ = error


class DecodeError(EventProcError, ValueError):
    """The body of an event cannot be decoded. Final: the event is given up without a retry."""


class StateTooLargeError(EventProcError, ValueError):
    """A handler's state is larger than the limit; the message gives both sizes in bytes."""


class StateUnreadableError(EventProcError, ValueError):
    """The codec cannot read a handler's stored state; the message says where it differs."""


class StateRefusedError(EventProcError):
    """A handler set ``context.state`` where no state can be stored.

    State is stored with a position, and must contain exactly the events up to it. With key lanes,
    events above the position are handled as well. And a dead letter that is replayed through a
    handler does not change the position.
    """

    def __init__(
        self,
        partition_id: str,
        why: str = "with key_concurrency above 1: there, events above the position are handled as "
        "well, so no state belongs to a position; keep it elsewhere, or set key_concurrency to 1",
    ) -> None:
        super().__init__(f"state of partition {partition_id!r} was set {why}")
        self.partition_id = partition_id
