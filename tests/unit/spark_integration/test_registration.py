"""Registration where Spark has found the format by itself, and where it fails."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from spark_integration import register


class Refusal(PySparkException):  # type: ignore[misc]  # it is not typed
    """An error with this condition."""

    def __init__(self, condition: str) -> None:
        Exception.__init__(self, condition)
        self._condition = condition

    def getCondition(self) -> str:  # noqa: N802 - of PySpark
        """Return the condition."""
        return self._condition

    def __str__(self) -> str:
        return self._condition


def session_that_raises(condition: str) -> Any:
    def refuse(_: object) -> None:
        raise Refusal(condition)

    return SimpleNamespace(
        createDataFrame=lambda *_: None, dataSource=SimpleNamespace(register=refuse)
    )


class FakeSession:
    """Becomes active by the one public method that makes a session of Spark so."""

    def __init__(self) -> None:
        self.is_active = False
        self.registered: list[object] = []
        self.dataSource = SimpleNamespace(register=self.registered.append)

    def createDataFrame(self, *_: object) -> None:  # noqa: N802 - of PySpark
        """Make the session the active one of this thread."""
        self.is_active = True


def test_a_session_is_active_in_the_thread_that_registered_the_format():
    """Spark looks for a format in the active session: without one, a query does not find it."""
    session: Any = FakeSession()
    register(session)

    assert session.is_active
    assert len(session.registered) == 1


def test_a_format_that_spark_has_found_by_itself_may_be_registered_again():
    """PySpark 4.0 refuses it."""
    register(session_that_raises("DATA_SOURCE_ALREADY_EXISTS"))


def test_another_error_of_the_registration_is_raised():
    with pytest.raises(Refusal, match="NO_ACTIVE_SESSION"):
        register(session_that_raises("NO_ACTIVE_SESSION"))
