"""Fetch files from Maven Central whose digests a list in this folder has.

A line of the list is ``group:artifact:version sha256:digest``; the files are jars.
Usage: ``python bootstrap/maven.py bootstrap/kafka.txt .tools/kafka/jars``.
"""

import hashlib
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"
DOWNLOAD_TIMEOUT_S = 60
DOWNLOADS_AT_ONCE = 8


def main() -> None:
    """Fill a folder with the files of a list; one that is there already is kept."""
    listed, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line for line in listed.read_text().splitlines() if line and not line.startswith("#")]
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        try:
            list(pool.map(lambda line: fetch(line, folder), lines))
        except OSError as error:
            sys.exit(f"eventproc: Maven Central does not answer ({error})")


def fetch(line: str, folder: Path) -> None:
    """Fetch the file of a line, unless it is there.

    Raises:
        OSError: it cannot be fetched.
    """
    coordinates, digest = line.split()
    group, artifact, version = coordinates.split(":")
    name = f"{artifact}-{version}.jar"
    file = folder / name
    if file.exists() and digest_of(file.read_bytes()) == digest:
        return
    url = "/".join((CENTRAL, *group.split("."), artifact, version, name))
    with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT_S) as answer:
        content: bytes = answer.read()
    if digest_of(content) != digest:
        sys.exit(f"eventproc: {name} that was downloaded is damaged; run make again")
    file.write_bytes(content)


def digest_of(content: bytes) -> str:
    """Return the digest in the form of a list."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


if __name__ == "__main__":
    main()
