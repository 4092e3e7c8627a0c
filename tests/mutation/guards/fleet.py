"""Guards of a fleet on Spark's executors: nobody is lost, nobody lives on unwatched."""

from tests.mutation.guard import Guard, guards_in

FLEET = guards_in(
    "spark_integration/fleet/fleet.py",
    ["tests/stories/test_fleet_keeping.py"],
    Guard(
        name="fleet: a job that Spark gave up is submitted again",
        without_it="after four deaths a processor is missing for ever",
        words="        while not self._stopping.is_set():\n            begun_s",
        mutated="        for _ in range(1):\n            begun_s",
        is_simulated=False,
    ),
    Guard(
        name="fleet: what can never work ends it",
        without_it="a handler that cannot be imported is tried for ever, and nobody is told",
        words="            if is_permanent:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="fleet: what has never served ends it",
        without_it="who asked for it waits until start_timeout, and is not told why",
        words="            elif not self._registry.has_served(slot):\n",
        mutated="            elif False:\n",
        is_simulated=False,
    ),
    Guard(
        name="fleet: it ends with its application",
        without_it="the program waits for ever for a Spark that is gone",
        words="            elif self._spark.is_stopped():\n",
        mutated="            elif False:\n",
        is_simulated=False,
    ),
    Guard(
        name="fleet: a job that waits for a core is cancelled at a stop",
        without_it="a stop waits for a place that never comes",
        words="                for slot in self._registry.silent_slots():\n"
        "                    self._spark.cancel(slot)\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="fleet: who does not stop in time is killed",
        without_it="a handler that hangs lives on after stop() has returned",
        words="            if late:\n                self._kill(late)\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="fleet: a stop without order is told",
        without_it="events come again, and nobody knows why",
        words="            if cut := sorted({*late, *self._registry.cut_short()}):\n",
        mutated="            if cut := []:\n",
        is_simulated=False,
    ),
)

FLEET_BOARD = guards_in(
    "spark_integration/fleet/members.py",
    ["tests/unit/spark_integration/fleet/test_fleet.py"],
    Guard(
        name="fleet: who was replaced has lost its slot",
        without_it="an executor that Spark took for lost goes on beside its replacement",
        words="            if report.incarnation in slot.replaced:\n                return False\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="fleet: who is silent is not live",
        without_it="a frozen executor is counted as live",
        words="silent_s is not None and silent_s < SILENCE_MAX_S,",
        mutated="silent_s is not None,",
        is_simulated=False,
    ),
    Guard(
        name="fleet: statistics are as old as the loop's last sign of life",
        without_it="a processor whose handler blocks it is counted as live",
        words=" + report.age_seconds",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="fleet: what a dead one handled stays counted",
        without_it="counts go back at each restart",
        words="                slot.handled_before += _handled(slot.report)\n",
        mutated="",
        is_simulated=False,
    ),
)

FLEET_MEMBER = [
    *guards_in(
        "spark_integration/fleet/statistics.py",
        ["tests/unit/spark_integration/fleet/test_fleet.py"],
        Guard(
            name="fleet: reports carry what only members know",
            without_it="whoever reaches the port can play a member",
            words="        if not hmac.compare_digest(given.encode(), token.encode()):\n",
            mutated="        if False:\n",
            is_simulated=False,
        ),
    ),
    *guards_in(
        "spark_integration/fleet/report_server.py",
        ["tests/stories/test_fleet_member.py"],
        Guard(
            name="fleet: a stop is answered",
            without_it="members hear nothing of it, and are killed",
            words="        return STOP if not may_continue or self._stopping.wait(HOLD_S) "
            "else GO\n",
            mutated="        return STOP if not may_continue else GO\n",
            is_simulated=False,
        ),
    ),
    *guards_in(
        "spark_integration/fleet/report_client.py",
        ["tests/stories/test_fleet_member.py"],
        Guard(
            name="fleet: a driver that stays out of reach is a reason to stop",
            without_it="processors outlive their driver, and nobody can stop them",
            words='                    self._on_stop("the driver is unreachable")\n',
            mutated="                    pass\n",
            is_simulated=False,
        ),
    ),
    *guards_in(
        "spark_integration/fleet/watchdog.py",
        ["tests/stories/test_fleet_member.py"],
        Guard(
            name="fleet: a member without its daemon stops",
            without_it="an orphan renews its leases until somebody finds it",
            words='                self._on_stop("the executor is gone")\n',
            mutated="                pass\n",
            is_simulated=False,
        ),
        Guard(
            name="fleet: a member that does not stop in time ends its process",
            without_it="a handler that hangs keeps an orphan alive, which renews its leases",
            words="                self._end_process()\n",
            mutated="                pass\n",
            is_simulated=False,
        ),
    ),
    *guards_in(
        "spark_integration/fleet/task.py",
        ["tests/stories/test_fleet_member.py"],
        Guard(
            name="fleet: signals are heard while a handler blocks the loop",
            without_it="a worker that is told to end does not",
            words="        on_signal(signal.Signals(number).name)\n",
            mutated="        name = signal.Signals(number).name\n"
            "        asyncio.get_running_loop().call_soon(on_signal, name)\n",
            is_simulated=False,
        ),
        Guard(
            name="fleet: a member stops its processor before it ends",
            without_it="nothing is checkpointed and handed over at a stop",
            words="            await processor.stop()\n",
            mutated="            running.cancel()\n            return\n",
            is_simulated=False,
        ),
    ),
    *guards_in(
        "spark_integration/fleet/jobs.py",
        ["tests/stories/test_fleet_keeping.py"],
        Guard(
            name="fleet: a setting that starts second attempts is refused",
            without_it="two attempts throw each other out again and again",
            words='    if is_on("spark.speculation") and',
            mutated="    if False and",
            is_simulated=False,
        ),
        Guard(
            name="fleet: a setting that kills silent workers is refused",
            without_it="every processor dies again and again",
            words='    if is_on("spark.python.worker.killOnIdleTimeout") and',
            mutated="    if False and",
            is_simulated=False,
        ),
    ),
]
