"""The ``eventproc`` command.

An expected error is one line on standard error and an exit code. A missing package is named
together with the extra that installs it. No secret is printed, whether it was an option or an
environment variable.
"""

import sys
from collections.abc import Sequence

from eventproc._base.extras import needing
from eventproc._command.arguments.option_names import OPTIONS
from eventproc._command.terminal.exits import (
    BAD_INPUT,
    INTERRUPTED,
    exit_code_of,
    explained,
    print_error,
)
from eventproc.errors import ConfigurationError, EventProcError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, ``sys.argv`` by default, and return the exit code."""
    try:
        with needing("cli"):
            # Imported here: packages of the extra may be missing, and Ctrl+C may arrive meanwhile.
            from eventproc._command.app import app  # noqa: PLC0415
        code = app(args=arguments, prog_name="eventproc", standalone_mode=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of standard output has ended, as `head` does
        return 0
    except EventProcError as error:
        if isinstance(error, ConfigurationError):
            error.name_settings(OPTIONS)
        print_error(explained(error))
        return exit_code_of(error)
    except Exception as error:
        message = getattr(error, "format_message", None)  # typer's errors in a command line have it
        if message is None:
            raise
        said = message().replace("Value error, ", "")  # the words of a library
        print_error(f"{said.rstrip('.')} (see: {_help_of(error)})")
        return BAD_INPUT
    return code if isinstance(code, int) else 0


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{getattr(context, 'command_path', 'eventproc')} --help"
