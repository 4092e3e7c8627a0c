"""Requests to the control endpoint of an emulator."""

import json
import urllib.error
import urllib.request


def ask(emulator, path, given=None, *, raw_body=None, **headers):
    """Send a request to the control endpoint; return status and answer."""
    body = None if given is None else json.dumps(given).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{emulator.health_port}{path}", data=raw_body or body, headers=headers
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
