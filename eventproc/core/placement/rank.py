"""A fixed order of names that is unrelated to their alphabet: the same on every machine."""

from functools import lru_cache
from hashlib import blake2b


@lru_cache(maxsize=1 << 16)
def rank(name: str) -> int:
    """Hash a name to a number below 2 ** 64."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest())


def by_rank(name: str) -> tuple[int, str]:
    """Return the key that sorts names by rank."""
    return rank(name), name
