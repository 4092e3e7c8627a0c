"""Why a credential gave no token, in one line. Pure.

``DefaultAzureCredential`` tries one credential after another and reports all failures, in over a
dozen lines. Most only mean that a credential is not set up; this module keeps the others.
"""

import re
from typing import Final

REMEDY: Final = (
    "In Azure, give the machine or the pod a managed identity or a workload identity; on your own "
    "machine, sign in with `az login`"
)

REASON_MAX: Final = 300
"""Most characters of a credential's own reason."""

_ATTEMPT: Final = re.compile(r"^\s*(\w+Credential): (.*)$", re.MULTILINE)
_NOT_SET_UP: Final = re.compile(
    r"unavailable|not (?:fully )?configured|not found|could not be found|not installed"
    r"|No accounts|requires the .* package|Please run 'az login'|unexpected content type"
    r"|no response from the IMDS|No managed identity endpoint",
    re.IGNORECASE,
)
"""Matches the failure of a credential that is not set up on this machine."""

_REQUESTED: Final = re.compile(r"AADSTS\d|request error|authentication failed", re.IGNORECASE)
"""Matches the failure of a credential that is set up, but whose request for a token failed."""


def no_token_reason(error: BaseException) -> str:
    """Return the reason, with the remedy."""
    text = str(error) or type(error).__name__
    attempts = _ATTEMPT.findall(text)
    if len(attempts) > 1:
        failed = [
            f"{name} failed: {_short(reason)}"
            for name, reason in attempts
            if _REQUESTED.search(reason) or not _NOT_SET_UP.search(reason)
        ]
        if not failed:
            return f"no credential was found. {REMEDY}"
        return f"no credential gave a token. {'; '.join(failed)}"
    return f"the credential gave no token: {_short(text)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON_MAX else f"{line[: REASON_MAX - 3]}..."
