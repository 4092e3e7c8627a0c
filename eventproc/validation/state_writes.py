"""Finds handler methods that set the state on every path, by their bytecode.

An assignment that some path through the method does not reach is ignored: the handler may skip it
when it runs with key lanes.
"""

import dis
import inspect
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from types import FunctionType
from typing import Final

from eventproc.state import TypedState

_LOOPS: Final = {"FOR_ITER", "SEND", "END_ASYNC_FOR"}
"""Jumps to the end of a loop over a call's events, which are never empty, or of an await."""

_RETURNS: Final = {"RETURN_VALUE", "RETURN_CONST"}


@cache  # Each processor that starts asks for its handler's class.
def always_sets_state(cls: type, method: FunctionType) -> bool:
    """Whether every call assigns ``context.state``, or saves or edits a ``TypedState``.

    Args:
        cls: The class of the method; a ``TypedState`` may be an attribute of it.
        method: The first parameter after ``self`` is the context.
    """
    code = method.__code__
    context = code.co_varnames[1] if code.co_argcount > 1 else ""
    outside = inspect.getclosurevars(method)
    known = {**outside.globals, **outside.nonlocals}
    beyond = 0
    """The furthest target of the jumps so far: instructions before it may be skipped."""

    for before, step in pairwise(dis.get_instructions(method)):
        if step.opname in _RETURNS:
            return False
        if step.offset >= beyond and _sets(before, step, context, cls, known):
            return True
        if "JUMP" in step.opname and step.opname not in _LOOPS:
            beyond = max(beyond, int(step.argval))
    return False


def _sets(
    before: dis.Instruction,
    step: dis.Instruction,
    context: str,
    cls: type,
    known: Mapping[str, object],
) -> bool:
    # Newer Python versions load two variables with one instruction.
    names = before.argval if isinstance(before.argval, tuple) else (before.argval,)
    if step.opname == "STORE_ATTR":
        return step.argval == "state" and context in names
    if step.argval not in {"save", "edit"} or not isinstance(names[-1], str):
        return False
    owner = known.get(names[-1], inspect.getattr_static(cls, names[-1], None))
    return isinstance(owner, TypedState)
