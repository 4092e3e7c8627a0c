"""The ``eventproc`` command.

Rule 1: whatever goes wrong on purpose is one line on standard error and an exit code.
Rule 2: a package that is missing is named together with the extra that brings it.
Rule 3: no secret is ever printed, whether it came as an option or from the environment.
"""

import sys
from collections.abc import Sequence

from eventproc.cli.exits import BAD_INPUT, INTERRUPTED, complain, exit_code_of
from eventproc.cli.extras import needing
from eventproc.errors import EventProcError


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command line, ``sys.argv`` by default, and return the exit code."""
    try:
        with needing("cli"):
            # Only here: what this imports may be missing, and Ctrl+C may come meanwhile.
            from eventproc.cli.app import app  # noqa: PLC0415
        code = app(args=arguments, prog_name="eventproc", standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away, as `head` does: nobody is left to tell
        return 0
    except EventProcError as error:
        complain(str(error))
        return exit_code_of(error)
    except Exception as error:
        message = getattr(error, "format_message", None)  # how typer marks a wrong command line
        if message is None:
            raise
        complain(f"{message()} (see: {_help_of(error)})")
        return BAD_INPUT
    return code if isinstance(code, int) else 0


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{getattr(context, 'command_path', 'eventproc')} --help"
