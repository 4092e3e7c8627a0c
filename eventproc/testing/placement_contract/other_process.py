"""Runs a placement in another process, in which strings have other hash values."""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from eventproc.core.placement.placement import Placement
from eventproc.core.placement.state import GroupState
from eventproc.testing.placement_contract.promises import Answer, answer

CANNOT_IMPORT: Final = 3
"""Exit code of a process that does not find the placement's class."""

PROGRAM: Final = f"from {__name__} import serve; serve()"


def answers_elsewhere(
    placement: Placement, states: Sequence[GroupState]
) -> Sequence[Answer] | None:
    """Return the answers of another process; ``None`` if the placement cannot be sent there.

    It can if ``pickle`` takes it, and its module can be imported: not ``__main__``, for example.

    Raises:
        RuntimeError: the placement fails there; the message has the error.
    """
    plain = [
        GroupState(
            resources=state.resources,
            owner_by_resource=dict(state.owner_by_resource),
            members=dict(state.members),
        )
        for state in states
    ]
    try:
        request = pickle.dumps((placement, plain))
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    path = os.pathsep.join(entry or os.curdir for entry in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=request,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
    )
    if done.returncode == CANNOT_IMPORT:
        return None
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip())
    found: list[Answer] = pickle.loads(done.stdout)  # noqa: S301 - from the process started here
    return found


def serve() -> None:
    """Answer the request of the process that started this one."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr  # what the placement's module prints is no part of the answer
    try:
        placement, states = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process above
    except (ImportError, AttributeError):
        sys.exit(CANNOT_IMPORT)
    out.write(pickle.dumps([answer(state, placement) for state in states]))
    out.flush()
