"""Run real processes through a storm of faults: ``make storm MINUTES=10``, on one store or each."""

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.integration.delivery.environment import STORES, libfaketime
from tests.integration.delivery.hub import HUBS
from tests.integration.delivery.storm import storm

SHOWN_MAX = 40


def main() -> int:
    """Return 1 if the storm has violations."""
    parser = argparse.ArgumentParser(prog="make storm", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="default: %(default)s")
    parser.add_argument("--store", choices=STORES, action="append", help="default: each in turn")
    parser.add_argument("--hub", choices=HUBS, default="emulator", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (not of the timing)")
    arguments = parser.parse_args()
    clocks = "of the whole process, by libfaketime" if libfaketime() else "in Python's `time` alone"
    print(f"wall clocks are shifted {clocks}")
    return max(
        [
            _storm(arguments.hub, name, arguments.minutes * 60, arguments.seed)
            for name in arguments.store or STORES
        ]
    )


def _storm(hub: str, name: str, seconds: float, seed: int) -> int:
    place = Path(tempfile.mkdtemp(prefix=f"eventproc-storm-{name}-"))
    print(f"{name}: {seconds:.0f} s, seed {seed}, in {place}", flush=True)
    violations = storm(
        HUBS[hub](),
        STORES[name](place),
        place,
        seconds=seconds,
        rng=Random(seed),
        say=lambda line: print(f"{name} {line}", flush=True),
    )
    for violation in violations[:SHOWN_MAX]:
        print(f"{name} {violation}", file=sys.stderr)
    print(f"{name}: {len(violations)} violations", flush=True)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
