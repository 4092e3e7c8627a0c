"""Dead letters as text and as JSON."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from eventproc._base.logs import printable
from eventproc._command.group.records import bytes_text
from eventproc._command.terminal.console import cell, plain_table
from eventproc.dead_letters import LetterOutcome, LetterResult
from eventproc.models import UNDECODED, DeadLetter, StoredLetter

ERROR_CHARACTERS_MAX: Final = 80
"""How much of an error the table shows."""

BODY_BYTES_MAX: Final = 4096
"""How much of a body that is not text is shown."""


def letters_table(letters: Sequence[StoredLetter], *, rows_max: int | None) -> RenderableType:
    """The letters as a table, a line for each; the first *rows_max* of them."""
    if not letters:
        return Text("There are no dead letters here, or none that match.")
    columns = ("letter", "given up (UTC)", "attempts", "key", "error", "again")
    table = plain_table(*columns, numbers=("attempts",))
    for column in table.columns:
        column.overflow = "fold"
    shown = letters[:rows_max]
    for stored in shown:
        letter = stored.letter
        if letter is None:
            table.add_row(cell(stored.place), "", "", "", cell(f"damaged: {stored.damage}"), "")
            continue
        table.add_row(
            cell(letter.letter_id),
            f"{letter.given_up_at:%Y-%m-%d %H:%M:%S}",
            str(letter.attempt_count),
            cell(letter.event.partition_key or ""),
            cell(_shortened(_error_of(letter))),
            "yes" if letter.event.replayed_from else "",
        )
    if len(shown) == len(letters):
        return Group(table, Text(_summary(letters)))
    more = "There are more: --limit 0 shows all."
    return Group(table, Text(f"The first {_summary(shown)}. {more}"))


def _shortened(error: str) -> str:
    return (
        error if len(error) <= ERROR_CHARACTERS_MAX else f"{error[: ERROR_CHARACTERS_MAX - 3]}..."
    )


def _summary(letters: Sequence[StoredLetter]) -> str:
    damaged_count = sum(stored.letter is None for stored in letters)
    errors = Counter(_kind_of(s.letter) for s in letters if s.letter is not None)
    parts = [f"{count:,} {name}" for name, count in errors.most_common(5)]
    if damaged_count:
        parts.append(f"{damaged_count:,} damaged")
    return f"{letters_text(len(letters))}: {', '.join(parts)}"


def letters_text(count: int) -> str:
    """A number of letters in words."""
    return f"{count:,} dead letter{'' if count == 1 else 's'}"


def _kind_of(letter: DeadLetter) -> str:
    return letter.error_type or "process died"


def _error_of(letter: DeadLetter) -> str:
    message = " ".join(letter.error_message.split())
    return f"{_kind_of(letter)}: {message}" if message else _kind_of(letter)


def letters_json(place: str, letters: Sequence[StoredLetter]) -> dict[str, object]:
    """The letters without bodies and tracebacks, as JSON."""
    return {
        "place": place,
        "count": len(letters),
        "damaged_count": sum(stored.letter is None for stored in letters),
        "letters": [_short_json(stored) for stored in letters],
    }


def _short_json(stored: StoredLetter) -> Mapping[str, object]:
    if stored.letter is None:
        return {"place": stored.place, "letter_id": None, "damage": stored.damage}
    letter = stored.letter
    details = {name: value for name, value in letter.details().items() if name != "traceback"}
    return {
        "place": stored.place,
        "letter_id": letter.letter_id,
        **details,
        "partition_key": letter.event.partition_key,
        "body_bytes": len(letter.event.body),
        "replayed_from": letter.event.replayed_from,
        "damage": None,
    }


def whole_json(stored: StoredLetter) -> Mapping[str, object]:
    """Everything of a letter, as JSON: what ``DeadLetter.to_json`` has, and its place."""
    if stored.letter is None:
        return {
            "place": stored.place,
            "letter_id": None,
            "damage": stored.damage,
            "raw_base64": b64encode(stored.raw).decode(),
        }
    return {"place": stored.place, **json.loads(stored.letter.to_json()), "damage": None}


def whole_text(stored: StoredLetter) -> Text:
    """Everything of a letter, for people."""
    letter = stored.letter
    if letter is None:
        heading = printable(f"{stored.place} is damaged: {stored.damage}")
        lines = [heading, "", _body_text(stored.raw)]
        return Text("\n".join(lines), overflow="fold")
    event = letter.event
    facts = {
        "letter": letter.letter_id,
        "place": stored.place,
        "given up": f"{letter.given_up_at.isoformat()} by {letter.owner_id}",
        "attempts": letter.attempt_count,
        "error": _error_of(letter),
        "enqueued": event.enqueued_time.isoformat(),
        "offset": event.offset,
        "key": event.partition_key,
        "message id": event.message_id,
        "content type": event.content_type,
        "replayed from": event.replayed_from,
        "not decoded": event.system_properties.get(UNDECODED),
        **{f"property {name}": repr(value) for name, value in event.properties.items()},
    }
    lines = [printable(f"{name}: {value}") for name, value in facts.items() if value is not None]
    lines += ["", f"body ({bytes_text(len(event.body))}):", _body_text(event.body)]
    if letter.traceback:
        lines += ["", letter.traceback.rstrip()]
    return Text("\n".join(lines), overflow="fold")


def _body_text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        shown = body[:BODY_BYTES_MAX].hex(" ")
        return shown if len(body) <= BODY_BYTES_MAX else f"{shown} ... (--format json has all)"


def results_json(place: str, results: Iterable[LetterResult]) -> dict[str, object]:
    """What became of each letter, as JSON."""
    rows = list(results)
    return {
        "place": place,
        "counts": {
            outcome.value: sum(row.outcome is outcome for row in rows) for outcome in LetterOutcome
        },
        "letters": [
            {
                "place": row.stored.place,
                "letter_id": None if row.stored.letter is None else row.stored.letter.letter_id,
                "outcome": row.outcome.value,
                "reason": row.reason or None,
            }
            for row in rows
        ],
    }


def counts_text(results: Iterable[LetterResult]) -> str:
    """How many letters were replayed, and why others stay."""
    counts = Counter(result.outcome for result in results)
    words = {
        LetterOutcome.REPLAYED: "replayed",
        LetterOutcome.REFUSED: "refused",
        LetterOutcome.HELD_BACK: "held back",
        LetterOutcome.DAMAGED: "damaged",
    }
    parts = [f"{counts[outcome]:,} {word}" for outcome, word in words.items() if counts[outcome]]
    return ", ".join(parts) or "none replayed"
