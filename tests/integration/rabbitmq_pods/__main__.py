"""Show what scaling, kills, a freeze and a broker's crash do to keyed orders on partition queues:
``make queues ORDERS=100000``.

Four pods share twelve queues. Half of the orders is published while the group is scaled 2-4-1-3,
the other half while pods are killed and frozen and the broker is killed.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from eventproc.testing.servers.rabbitmq_broker import RabbitMqBroker
from tests.integration.rabbitmq_pods.pods import disturbed, planned


def main() -> int:
    """Return 1 if there are violations."""
    parser = argparse.ArgumentParser(prog="make queues", description=__doc__)
    parser.add_argument("--orders", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=2000, help="a second; default: %(default)s")
    parser.add_argument("--lanes", type=int, default=1, help="key lanes; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of which pods are killed")
    arguments = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="eventproc-queues-"))
    violations = 0
    with RabbitMqBroker(location=place) as broker:
        for name, play, settings in (
            ("planned", planned, {}),
            ("disturbed", disturbed, {"seed": arguments.seed}),
        ):
            began_s = time.monotonic()
            pods, publisher = play(
                place,
                broker,
                arguments.orders // 2,
                arguments.rate,
                lambda line: print(line, flush=True),
                lanes=arguments.lanes,
                **settings,
            )
            found = pods.find(publisher)
            print(f"{name}, {time.monotonic() - began_s:.0f} s: {found}")
            print(f"  {dict(pods.events)}, published again: {len(publisher.twice)}", flush=True)
            for violation in found.violations[:20]:
                print(violation, file=sys.stderr)
            violations += len(found.violations)
            violations += len(found.repeated) + len(found.late) if name == "planned" else 0
    print(f"{violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
