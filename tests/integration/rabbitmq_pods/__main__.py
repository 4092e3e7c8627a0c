"""Show what scaling, kills, a freeze and a broker's crash do to keyed orders on partition queues:
``make queues ORDERS=100000``.

Up to four pods share twelve queues. So many orders are published while the group is scaled 2-4-1-3,
and again while pods are killed and frozen and the broker is killed. A fifth of them is published
with handlers that take their time, while pods are scaled 2-4-1-3: with leases, and without them,
with nothing but the single active consumer.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.rabbitmq_pods.findings import Findings
from tests.integration.rabbitmq_pods.pods import Pods, Publisher, disturbed, planned
from tests.servers.rabbitmq_broker import RabbitMqBroker

WORK_S = 0.004
WORK_RATE = 1500
"""Orders a second, of the 3,000 that twelve queues can handle one by one."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the run."""

    name: str
    play: Callable[..., tuple[Pods, Publisher]]
    orders: int
    rate: float
    settings: dict[str, Any] = field(default_factory=dict)
    has_leases: bool = True

    def violations(self, found: Findings) -> list[object]:
        """Return what should not be there; without leases, two handlers at once should be."""
        if not self.has_leases:
            return [] if found.overlaps else ["no two handlers at once: the judge is blind"]
        if self.play is disturbed:
            return found.violations
        return [*found.violations, *found.repeated, *found.late]


def parts(orders: int, rate: float, lanes: int, seed: int) -> list[Part]:
    """Return the parts of the run."""
    working: dict[str, Any] = {"orders": orders // 5, "rate": min(rate, WORK_RATE), "play": planned}
    return [
        Part(name="planned", play=planned, orders=orders, rate=rate, settings={"lanes": lanes}),
        Part(
            name="disturbed",
            play=disturbed,
            orders=orders,
            rate=rate,
            settings={"lanes": lanes, "seed": seed},
        ),
        Part(name="with leases", settings={"work_s": WORK_S, "prefix": "Leases"}, **working),
        Part(
            name="single active consumer alone",
            settings={"work_s": WORK_S, "prefix": "Alone", "program": "single_active"},
            has_leases=False,
            **working,
        ),
    ]


def main() -> int:
    """Return 1 if there are violations."""
    parser = argparse.ArgumentParser(prog="make queues", description=__doc__)
    parser.add_argument("--orders", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=2000, help="a second; default: %(default)s")
    parser.add_argument("--lanes", type=int, default=1, help="key lanes; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of which pods are killed")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="eventproc-queues-"))
    violations = 0
    with RabbitMqBroker(location=place) as broker:
        for part in parts(given.orders, given.rate, given.lanes, given.seed):
            print(f"{part.name}:", flush=True)
            began_s = time.monotonic()
            pods, publisher = part.play(
                place,
                broker,
                part.orders,
                part.rate,
                lambda line: print(f"  {line}", flush=True),
                **part.settings,
            )
            found = pods.find(publisher)
            print(f"  {time.monotonic() - began_s:.0f} s: {found}")
            print(f"  {dict(pods.events)}, published again: {len(publisher.twice)}", flush=True)
            wrong = part.violations(found)
            for violation in wrong[:20]:
                print(violation, file=sys.stderr)
            violations += len(wrong)
    print(f"{violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
