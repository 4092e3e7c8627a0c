"""What a processor refuses when it is built, each with the remedy."""

from eventproc.config import EventProcessorConfig, FailureAction
from eventproc.errors import ConfigurationError
from eventproc.ports import DeadLetterSink


def check_handler(handler: object) -> None:
    """Refuse a handler where the way to make one is wanted."""
    if not callable(handler):
        raise ConfigurationError(
            f"handler is {handler!r}: give the handler class itself, or a function that "
            "makes a handler for a partition"
        )


def check_restart(config: EventProcessorConfig, owner_id: str | None) -> None:
    """Refuse to keep partitions for somebody who has no name."""
    if config.keeps_ownership_on_stop and owner_id is None:
        raise ConfigurationError(
            "keeps_ownership_on_stop needs an owner_id that stays the same over restarts: "
            "give one, or nobody could take up what this processor kept"
        )


def check_owner_id(name: str) -> None:
    """Refuse a name that no store could keep."""
    if not name or not name.isprintable() or not name.isascii() or name != name.strip():
        raise ConfigurationError(
            f"owner_id {name!r} cannot be kept with a blob: give printable ASCII characters "
            "without surrounding blanks"
        )


def check_dead_letters(config: EventProcessorConfig, sink: DeadLetterSink | None) -> None:
    """Refuse dead letters that have no place to go."""
    if config.failure_policy.then is FailureAction.DEAD_LETTER and sink is None:
        raise ConfigurationError(
            "the failure policy says DEAD_LETTER, but no dead_letters is given: give the processor "
            "a DeadLetterSink, or choose SKIP or STOP"
        )
