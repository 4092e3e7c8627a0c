"""What only a reader of planned ranges can meet."""

from eventproc.errors import SourceError


class EventsLostError(SourceError):
    """The hub no longer has events that were to be read: retention has passed them.

    With ``failOnDataLoss=false`` they are counted and skipped instead. A hub that was deleted and
    created anew gives this error, too.
    """
