"""The report of ``eventproc verify``."""

from datetime import timedelta

from eventproc._command.verify.report import exit_code_of, report_of
from eventproc._command.verify.run import Finding, Result
from eventproc.testing import ClauseReport


def finding(result, details=""):
    """Return what a check found."""
    check = ClauseReport(
        name="a_check", promise="It holds.", took=timedelta(0), relied_on_by="x.py"
    )
    return Finding(service="Event Hubs", check=check, result=result, details=details)


def test_a_report_has_no_names_of_the_user():
    """Neither as a word nor in another case; other words that contain one stay."""
    details = "hub 'Orders' at contoso.servicebus.windows.net | 0b" + "4e" * 15 + "\nreorders"
    names = {"orders", "contoso.servicebus.windows.net", "contoso", ""}
    report = report_of([finding(Result.DIFFERS, details)], names, service="Event Hubs")

    assert report.splitlines()[-1] == (
        "| Event Hubs | It holds. | differs from what we assume | x.py | "
        "hub '<name>' at <name> \\| <name> reorders |"
    )
    assert "- 1 differs from what we assume" in report


def test_only_what_differs_from_an_assumption_is_a_failure():
    """A difference from the emulator breaks no code."""
    others = [finding(result) for result in Result if result is not Result.DIFFERS]

    assert exit_code_of(others) == 0
    assert exit_code_of([*others, finding(Result.DIFFERS)]) == 1
