"""A user's program: it runs a fleet of two processors until the file ``stop`` exists.

It writes the state of the fleet to the file ``status``. Both are in the folder of its argument.
"""

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from eventproc import CheckpointPolicy, EventProcessorConfig
from spark_integration import FleetStatistics, Secret, SourceRecipe, StoreRecipe, run_on_executors

HUB = "EVENTPROC_TEST_HUB"
STORAGE = "EVENTPROC_TEST_STORAGE_SECRET"
CONTAINER = "EVENTPROC_TEST_CONTAINER"

CONFIG = EventProcessorConfig(
    load_balancing_interval=timedelta(seconds=1),
    ownership_expiration=timedelta(seconds=15),
    checkpoint_policy=CheckpointPolicy(max_events=10, interval=None),
    batch_size_max=20,
)


def main() -> None:
    """Run the fleet."""
    folder = Path(sys.argv[1])

    def write_status(now: FleetStatistics) -> None:
        members = [
            {
                "process": member.process_id,
                "owned": member.statistics.owned if member.statistics else (),
                "is_live": member.is_live,
                "restarts": member.restart_count,
                "phase": member.phase,
            }
            for member in now.members
        ]
        (folder / "status.new").write_text(json.dumps(members))
        (folder / "status.new").rename(folder / "status")

    spark = SparkSession.builder.getOrCreate()
    with run_on_executors(
        spark,
        processors=2,
        name="guests",
        source=SourceRecipe(connection=Secret(f"env:{HUB}")),
        store=StoreRecipe(spec=f"blob:{os.environ[CONTAINER]}", storage=Secret(f"env:{STORAGE}")),
        handler="fleet_handlers:Journal",
        config=CONFIG,
        progress_interval=timedelta(seconds=0.2),
        on_progress=write_status,
    ) as fleet:
        while not (folder / "stop").exists():
            time.sleep(0.05)
    write_status(fleet.statistics())


if __name__ == "__main__":
    main()
