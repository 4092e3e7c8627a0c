"""A fixed order of names, by their hash: the same on every machine, and not alphabetical."""

from functools import lru_cache
from hashlib import blake2b


@lru_cache(maxsize=1 << 16)
def rank(name: str) -> int:
    """Hash a name to a number below 2 ** 64."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


def by_rank(name: str) -> tuple[int, str]:
    """Return the key that sorts names by rank."""
    return rank(name), name
