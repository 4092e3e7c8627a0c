"""The processors of the demo, by name: who runs, who was killed, who left."""

from collections.abc import Collection
from pathlib import Path

from eventproc.cli.demo.children import Child
from eventproc.cli.demo.stage import Stage

STOP_S = 25.0
"""Above the processors' own shutdown time-out, and what Python takes to end."""


class Fleet:
    """Starts and ends processors; names them A, B, C, ..."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._child_by_name: dict[str, Child] = {}
        self._fate_by_name: dict[str, str] = {}

    @property
    def live(self) -> list[str]:
        """Those that shall have a share: neither killed, nor frozen, nor told to leave."""
        return [
            name for name, fate in self._fate_by_name.items() if fate in {"starting", "running"}
        ]

    def logs_of(self, names: Collection[str] | None = None) -> list[Path]:
        """The logs of these, or of every processor there ever was."""
        return [
            child.log
            for name, child in self._child_by_name.items()
            if names is None or name in names
        ]

    def fates(self) -> list[tuple[str, int, str]]:
        """Name, process id and fate of every processor there ever was."""
        return [
            (name, child.pid, self._fate_by_name[name])
            for name, child in self._child_by_name.items()
        ]

    def start(self) -> str:
        """Start one more; return its name."""
        name = chr(ord("A") + len(self._child_by_name))
        self._child_by_name[name] = self._stage.start_processor(name)
        self._fate_by_name[name] = "starting"
        return name

    def seen(self, name: str) -> None:
        """Note that it is known to the group."""
        if self._fate_by_name.get(name) == "starting":
            self._fate_by_name[name] = "running"

    def kill(self, name: str) -> None:
        """End it as a crash would: SIGKILL."""
        self._fate_by_name[name] = "killed"
        self._child_by_name[name].kill()

    def freeze(self, name: str) -> None:
        """Let it stand still for a while, as a suspended machine or a starved process does."""
        self._fate_by_name[name] = "frozen"
        self._child_by_name[name].freeze()

    def thaw(self) -> str:
        """Let the frozen one go on; return its name."""
        name = next(name for name, fate in self._fate_by_name.items() if fate == "frozen")
        self._fate_by_name[name] = "running"
        self._child_by_name[name].thaw()
        return name

    def ask_to_leave(self, name: str) -> None:
        """End it in good order: SIGTERM."""
        self._fate_by_name[name] = "leaving"
        self._child_by_name[name].terminate()

    def check(self) -> None:
        """Make sure that whoever should live does.

        Raises:
            ChildFailedError: One ended by itself.
        """
        for name, fate in self._fate_by_name.items():
            child = self._child_by_name[name]
            if fate == "leaving" and child.exit_code == 0:
                self._fate_by_name[name] = "left"
            if fate != "killed":
                child.check()

    async def stop(self) -> list[str]:
        """Stop all in good order; return what is wrong with those that did not end well."""
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
