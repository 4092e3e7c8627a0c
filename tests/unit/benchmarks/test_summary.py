"""Which results are compared in the summary of all benchmarks."""

from benchmarks._rows import Row
from benchmarks._summary import comparisons

READERS: list[Row] = [
    {"candidate": "eventproc", "partitions": 1, "events_per_s": 60_000, "cpu_us_per_event": 8.0},
    {"candidate": "azure-aio", "partitions": 1, "events_per_s": 5_000, "cpu_us_per_event": 40.0},
    {"candidate": "azure-sync", "partitions": 1, "events_per_s": 30_000, "cpu_us_per_event": 25.0},
    {"candidate": "bare socket", "partitions": 1, "events_per_s": 900_000, "cpu_us_per_event": 1.0},
    {"candidate": "eventproc", "partitions": 32, "events_per_s": 10_000, "cpu_us_per_event": 9.0},
    {"candidate": "azure-aio", "partitions": 32, "events_per_s": 20_000, "cpu_us_per_event": 9.0},
]


def test_results_of_one_case_are_compared():
    """Higher rates and lower costs are better; there are the best other one and the limit, too."""
    rate, cpu, *_ = comparisons("receive", READERS)

    assert (rate.case, rate.figure, rate.other_name) == (
        "partitions 1",
        "events_per_s",
        "azure-aio",
    )
    assert (rate.times_better, rate.times_better_than_best, rate.limit) == (12, 2, 900_000)
    assert (cpu.times_better, cpu.times_better_than_best, cpu.limit) == (5, 25 / 8, 1)


def test_each_way_to_use_this_library_is_compared():
    """It is named in the case."""
    columns: Row = {**READERS[0], "candidate": "eventproc-columns", "cpu_us_per_event": 2.0}
    found = [each for each in comparisons("receive", [*READERS, columns]) if each.ours == 2]

    assert [(each.case, each.times_better) for each in found] == [("columns, partitions 1", 20)]


def test_a_result_that_is_worse_is_shown_as_such():
    """Cases are not mixed."""
    _, _, rate, cpu = comparisons("receive", READERS)

    assert (rate.case, rate.times_better, rate.best) == ("partitions 32", 0.5, None)
    assert cpu.times_better == 1


def test_figures_without_a_unit_are_settings_and_ratios_are_ignored():
    """Otherwise no two rows would belong to one case."""
    rows: list[Row] = [
        {"candidate": "eventproc", "cpu_ratio": 1.0, "list_ms": 2.0, "question": "list"},
        {"candidate": "azure", "cpu_ratio": 3.0, "list_ms": 6.0, "question": "list"},
    ]
    (found,) = comparisons("loop", rows)

    assert (found.case, found.figure, found.times_better) == ("list", "list_ms", 3)


def test_rows_that_are_comparisons_are_not_changed():
    """A side may have 0, which gives no ratio; without a figure there is no comparison."""
    rows: list[Row] = [
        {"measure": "m", "unit": "s", "eventproc": 0, "azure": 7, "times_better": None},
        {"measure": "n", "unit": "s", "eventproc": 1.0, "azure": None, "times_better": None},
    ]
    (found,) = comparisons("group", rows)

    assert (found.figure, found.ours, found.other, found.times_better) == ("m, s", 0, 7, None)
