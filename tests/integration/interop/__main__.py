"""Run processors of every Azure SDK and ours in one group: ``make interop MINUTES=15``."""

import argparse
import sys
import time

from .mixed import PACES, mixed


def main() -> int:
    """Return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="make interop", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (not of the timing)")
    parser.add_argument(
        "--group", choices=PACES, action="append", help="default: both, beside each other"
    )
    arguments = parser.parse_args()
    began_s = time.monotonic()
    wrong = mixed(
        arguments.minutes * 60,
        arguments.seed,
        [PACES[name] for name in arguments.group or PACES],
        lambda line: print(f"{time.monotonic() - began_s:5.0f} s  {line}", flush=True),
    )
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(wrong)} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
