"""The demo's processor processes, by name, and the state of each."""

from collections.abc import Collection
from pathlib import Path

from eventproc.cli.demo.children import Child
from eventproc.cli.demo.hub import HubStage

STOP_S = 25.0
"""Longer than the processors' shutdown timeout and the exit of Python together."""


class Fleet:
    """Starts, signals and stops processors, which are named A, B, C, ..."""

    def __init__(self, stage: HubStage) -> None:
        self._stage = stage
        self._child_by_name: dict[str, Child] = {}
        self._fate_by_name: dict[str, str] = {}

    @property
    def live(self) -> list[str]:
        """The names of the processors that should own partitions."""
        return [
            name for name, fate in self._fate_by_name.items() if fate in {"starting", "running"}
        ]

    def logs_of(self, names: Collection[str] | None = None) -> list[Path]:
        """Return the logs of these processors, by default of all that were started."""
        return [
            child.log
            for name, child in self._child_by_name.items()
            if names is None or name in names
        ]

    def fates(self) -> list[tuple[str, int, str]]:
        """Return name, process id and fate of each processor that was started."""
        return [
            (name, child.pid, self._fate_by_name[name])
            for name, child in self._child_by_name.items()
        ]

    def start(self) -> str:
        """Start a processor, and return its name."""
        name = chr(ord("A") + len(self._child_by_name))
        self._child_by_name[name] = self._stage.start_processor(name)
        self._fate_by_name[name] = "starting"
        return name

    def seen(self, name: str) -> None:
        """Note that a processor has a record in the store."""
        if self._fate_by_name.get(name) == "starting":
            self._fate_by_name[name] = "running"

    def kill(self, name: str) -> None:
        """End a processor as a crash would: SIGKILL."""
        self._fate_by_name[name] = "killed"
        self._child_by_name[name].kill()

    def freeze(self, name: str) -> None:
        """Suspend a processor, as on a suspended machine: SIGSTOP."""
        self._fate_by_name[name] = "frozen"
        self._child_by_name[name].freeze()

    def thaw(self) -> str:
        """Resume the frozen processor: SIGCONT. Return its name."""
        name = next(name for name, fate in self._fate_by_name.items() if fate == "frozen")
        self._fate_by_name[name] = "running"
        self._child_by_name[name].thaw()
        return name

    def ask_to_leave(self, name: str) -> None:
        """Stop a processor gracefully: SIGTERM."""
        self._fate_by_name[name] = "leaving"
        self._child_by_name[name].terminate()

    def check(self) -> None:
        """Check that no processor ended unexpectedly.

        Raises:
            ChildFailedError: A processor failed.
        """
        for name, fate in self._fate_by_name.items():
            child = self._child_by_name[name]
            if fate == "leaving" and child.exit_code == 0:
                self._fate_by_name[name] = "left"
            if fate != "killed":
                child.check()

    async def stop(self) -> list[str]:
        """Stop all processors gracefully; return a message for each with a bad exit code."""
        leaving = [
            n for n, f in self._fate_by_name.items() if f in {"starting", "running", "leaving"}
        ]
        for name in leaving:
            self.ask_to_leave(name)
        problems = []
        for name in leaving:
            code = await self._child_by_name[name].ended(STOP_S)
            self._fate_by_name[name] = "left"
            if code:
                problems.append(f"processor {name} stopped with exit code {code}")
        return problems
