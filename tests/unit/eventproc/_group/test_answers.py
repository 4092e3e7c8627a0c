"""For how long a store answered nothing, or no write."""

from eventproc._group.answers import Answers
from eventproc.models import WriteOutcome

WON, LOST, UNKNOWN = WriteOutcome.WON, WriteOutcome.LOST, WriteOutcome.UNKNOWN


class Steps:
    """Answers at given times."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.answers = Answers(lambda: self.now_s)

    def at(self, now_s: float) -> Answers:
        """Go on to this time."""
        self.now_s = now_s
        return self.answers


def test_the_longest_silence_since_the_last_question_counts():
    """Whichever answer ends it."""
    steps = Steps()
    steps.at(0).note_answer()
    steps.at(40).note_outcomes([LOST])
    steps.at(45).note_answer()

    assert steps.answers.take_silence_s() == 40
    assert steps.at(50).take_silence_s() == 0
    steps.at(52).note_answer()
    assert steps.answers.take_silence_s() == 7


def test_writes_are_unanswered_from_the_first_one_to_the_next_answer():
    """Also if the answer came before anybody asked; one answer of several will do."""
    steps = Steps()
    steps.at(10).note_sent()
    steps.at(15).note_outcomes([UNKNOWN])
    steps.at(17).note_sent()
    assert steps.at(19).take_unanswered_s() == 9
    steps.at(30).note_outcomes([UNKNOWN, WON])

    assert steps.at(40).take_unanswered_s() == 20
    assert steps.answers.take_unanswered_s() == 0


def test_a_write_that_is_answered_late_was_slow():
    """While it is under way nobody knows."""
    steps = Steps()
    steps.at(10).note_sent()
    assert steps.at(25).take_unanswered_s() == 15
    steps.at(30).note_outcomes([WON])

    assert steps.at(31).take_unanswered_s() == 0
    assert steps.answers.unanswered_since_s is None
