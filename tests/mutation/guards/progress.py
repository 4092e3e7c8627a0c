"""Guards of what counts as done, and of what is tried again."""

from tests.mutation.guard import Guard, guards_in

PROGRESS = guards_in(
    "eventproc/core/progress.py",
    [
        "tests/unit/eventproc/core/test_progress.py",
        "tests/stories/test_completed_ranges.py",
        "tests/unit/eventproc/partition/test_handler_calls.py",
        "tests/stories/test_failures.py",
    ],
    Guard(
        name="an event that was handled is not delivered again by the same pump",
        without_it="a receiver that begins too early makes duplicates",
        words="if events[0].sequence_number <= self._newest:",
        mutated="if False:",
        killers=("tests/stories/test_early_receiver.py",),
        suites=("edges", "safety", "lanes"),
    ),
    Guard(
        name="changes of a failed call to the state are undone",
        without_it="events that are retried are counted twice",
        words="        if not keeps_state:\n            self._state = self._kept_state\n",
        mutated="",
        suites=("safety", "edges"),
    ),
    Guard(
        name="a checkpoint during a call stores the state that belongs to its position",
        without_it="state and position do not match",
        words="state=place.state if self.has_state else None,",
        mutated="state=self._state if self.has_state else None,",
        suites=("safety", "edges"),
    ),
    Guard(
        name="a state that covers a later event is not stored with an earlier position",
        without_it="after a restart the later event is counted twice",
        words="        if self._is_held:\n            return earlier_count\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="an event that was handled is not blamed for the death of processes",
        without_it="passing the events of a former owner makes a poison event harmless",
        words="self.count_delivery(delivery_count)  # The next event is as suspect",
        mutated="pass  #",
        is_simulated=False,
        killers=("tests/stories/test_completed_ranges_after_a_crash.py",),
    ),
    Guard(
        name="key lanes: events in completed ranges are not handled again",
        without_it="a restart repeats events that the checkpoint marks as done",
        words="        left = self._window.not_done(events)\n",
        mutated="        left = events\n",
        suites=("lanes", "planned-lanes"),
    ),
    suites=("lanes", "planned-lanes", "safety"),
)

WINDOW = guards_in(
    "eventproc/core/window.py",
    ["tests/unit/eventproc/core/test_window.py"],
    Guard(
        name="key lanes: the position passes only events that are done",
        without_it="a checkpoint covers events that no lane has handled yet",
        words="            if waiting >= 0:\n                break\n",
        mutated="            if waiting >= 0:\n                self._drop(run, run.end)\n",
        suites=("lanes", "planned-lanes"),
    ),
    Guard(
        name="the position passes a part of a batch only if no event of it is left out",
        without_it="a checkpoint covers an event that is not handled",
        words="if count > 1 and events[-1].sequence_number != run.events[end - 1].sequence_number:",
        mutated="if False:",
        suites=("lanes", "planned-lanes"),
    ),
    Guard(
        name="only what a call completed is marked as done between other events",
        without_it="events of other keys count as done",
        words="        if end - begin == count:\n",
        mutated="        if True:\n",
        suites=("lanes", "planned-lanes"),
    ),
)

FAILURE = guards_in(
    "eventproc/core/failure.py",
    ["tests/unit/eventproc/core/test_failure.py"],
    Guard(
        name="a failed call does not count as an attempt of each of its events",
        without_it="good events are given up because of a bad one",
        words="    if len(part) == 1:\n        return FailureReport(failed={part[0]",
        mutated="    if part:\n        return FailureReport(failed={part[0]",
        suites=("safety",),
    ),
    Guard(
        name="an event that an error names, or that was not tried, is not done",
        without_it="failed events are never handled",
        words="_parts_without(part, {*named, *untried})",
        mutated="(part,)",
        is_simulated=False,
    ),
    Guard(
        name="a call with columns is halved until the failing row is alone",
        without_it="one bad row among 10,000 makes 10,000 calls",
        words="[suspect[len(suspect) // 2]] if self.halves else suspect",
        mutated="suspect",
        is_simulated=False,
    ),
)

HANDLERS = guards_in(
    "eventproc/handler/handlers.py",
    ["tests/stories/test_columns.py"],
    Guard(
        name="a handler that takes events gets events, whatever it defines for Spark",
        without_it="its process_columns is called in a processor",
        words="            and own.process_event is base.process_event\n"
        "            and own.process_value is base.process_value\n"
        "            and own.process_events is base.process_events\n"
        "        )\n\n    async def",
        mutated="        )\n\n    async def",
        is_simulated=False,
    ),
)

READER = guards_in(
    "eventproc/partition/reader.py",
    ["tests/stories/test_columns.py"],
    Guard(
        name="each receiver of a handler of columns is told so",
        without_it="after a broken link an object is made for each event",
        words="        if self._takes_columns:\n            self._receiver.read_columns()\n",
        mutated="",
        is_simulated=False,
    ),
)

BLAME = guards_in(
    "eventproc/partition/blame.py",
    ["tests/stories/test_columns.py"],
    Guard(
        name="a RowError that names a row that the batch does not have names none",
        without_it="the pump ends because of a mistake in a handler",
        words="isinstance(error, RowError) and error.rows[-1] >= len(part)",
        mutated="False",
        is_simulated=False,
    ),
)
