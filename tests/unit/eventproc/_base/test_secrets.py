"""A secret is given as itself, in a variable, or in a file of one line."""

import os

import pytest

from eventproc._base.secrets import read_secret
from eventproc.errors import ConfigurationError

PEM = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----"
KEY = "Endpoint=sb://h/;SharedAccessKey=c2VjcmV0"


@pytest.mark.parametrize("content", [KEY, f"{KEY}\n", f"{KEY}\r\n"])
def test_a_secret_is_the_line_of_a_file(tmp_path, monkeypatch, content):
    """Without the end of the line; a variable may name the file."""
    (tmp_path / "hub").write_bytes(content.encode())
    monkeypatch.setenv("HUB", f"file:{tmp_path}/hub")

    assert read_secret(f"file:{tmp_path}/hub") == KEY
    assert read_secret("env:HUB") == KEY
    assert read_secret(KEY) == KEY


def test_a_key_in_pem_has_several_lines(tmp_path):
    """Such as ``ssl.key.pem`` of a Kafka client."""
    (tmp_path / "key").write_text(f"{PEM}\n")

    assert read_secret(f"file:{tmp_path}/key") == PEM


def test_a_file_is_read_anew_each_time(tmp_path):
    """Nothing is kept: who asks later gets what the file has then."""
    file = tmp_path / "hub"
    file.write_text("one")
    first = read_secret(f"file:{file}")
    file.write_text("two")

    assert (first, read_secret(f"file:{file}")) == ("one", "two")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist on this machine: correct the path, or mount the secret"),
        (b"", "is empty: write the secret into it"),
        (b"\n", "is empty: write the secret into it"),
        (f"{KEY}\n{KEY}\n".encode(), "has several lines: leave the one that is the secret"),
        (f"{KEY}\r{KEY}".encode(), "has several lines: leave the one that is the secret"),
        (f"{KEY}\xff".encode("latin-1"), "is no text in UTF-8: write the secret anew"),
    ],
)
def test_a_file_without_one_line_is_refused(tmp_path, content, message):
    """The message names the file and the remedy, and not what is in it."""
    file = tmp_path / "hub"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=message) as refused:
        read_secret(f"file:{file}")

    assert repr(str(file)) in str(refused.value)
    assert "c2VjcmV0" not in f"{refused.value} {refused.value.__cause__}"


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(tmp_path):
    """A folder, say; or a file that the process's user may not read."""
    with pytest.raises(ConfigurationError, match=r"cannot be read \(Is a directory\)"):
        read_secret(f"file:{tmp_path}")
    (tmp_path / "hub").write_text(KEY)
    (tmp_path / "hub").chmod(0)
    if os.access(tmp_path / "hub", os.R_OK):  # Root may read all.
        return
    with pytest.raises(ConfigurationError, match=r"cannot be read \(Permission denied\)"):
        read_secret(f"file:{tmp_path}/hub")
