"""Guards of a fleet on Spark's executors: members are restarted, and none outlives its driver."""

from tests.mutation.guard import Guard, guards_in

FLEET = guards_in(
    "spark_integration/fleet/fleet.py",
    ["tests/stories/test_fleet_keeping.py"],
    Guard(
        name="fleet: a job that Spark gave up is submitted again",
        without_it="after four failures of its task a processor is missing for ever",
        words="        while not self._stopping.is_set():\n            begun_s",
        mutated="        for _ in range(1):\n            begun_s",
        is_simulated=False,
    ),
    Guard(
        name="fleet: a permanent error ends the fleet",
        without_it="a handler that cannot be imported is tried for ever, without an error",
        words="            if is_permanent:\n",
        mutated="            if False:\n",
        is_simulated=False,
    ),
    Guard(
        name="fleet: a processor that fails before it ever served ends the fleet",
        without_it="the caller waits until start_timeout, and is not told why",
        words="            elif not self._registry.has_served(slot):\n",
        mutated="            elif False:\n",
        is_simulated=False,
    ),
    Guard(
        name="fleet: the fleet ends with its Spark application",
        without_it="the program waits for ever for a Spark that has stopped",
        words="            elif self._spark.is_stopped():\n",
        mutated="            elif False:\n",
        is_simulated=False,
    ),
    Guard(
        name="fleet: a stop cancels jobs that wait for a core",
        without_it="a stop waits for a core that never becomes free",
        words="                for slot in self._registry.silent_slots():\n"
        "                    self._spark.cancel(slot)\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="fleet: a processor that does not stop in time is killed",
        without_it="a handler that hangs runs on after stop() has returned",
        words="            if late:\n                self._kill(late)\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="fleet: stop() raises if processors were killed",
        without_it="events are delivered again, and the caller does not know why",
        words="            if cut := sorted({*late, *self._registry.cut_short()}):\n",
        mutated="            if cut := []:\n",
        is_simulated=False,
    ),
)

FLEET_REGISTRY = guards_in(
    "spark_integration/fleet/members.py",
    ["tests/unit/spark_integration/fleet/test_fleet.py"],
    Guard(
        name="fleet: a member that was replaced loses its slot",
        without_it="an executor that Spark wrongly took for lost runs beside its replacement",
        words="            if report.incarnation in slot.replaced:\n                return False\n",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="fleet: a member without recent reports is not live",
        without_it="a frozen executor is counted as live",
        words="silent_s is not None and silent_s < SILENCE_MAX_S,",
        mutated="silent_s is not None,",
        is_simulated=False,
    ),
    Guard(
        name="fleet: the age of a report includes the time since the event loop last ran",
        without_it="a processor whose handler blocks its event loop is counted as live",
        words=" + report.age_seconds",
        mutated="",
        is_simulated=False,
    ),
    Guard(
        name="fleet: events handled by a dead member stay counted",
        without_it="the count of handled events goes back at each restart",
        words="                slot.handled_before += _handled(slot.report)\n",
        mutated="",
        is_simulated=False,
    ),
)

FLEET_PROCESSES = [
    *guards_in(
        "spark_integration/fleet/statistics.py",
        ["tests/unit/spark_integration/fleet/test_fleet.py"],
        Guard(
            name="fleet: a report without the fleet's token is refused",
            without_it="any program that reaches the port can act as a member",
            words="    if not hmac.compare_digest(given, token.encode()):\n",
            mutated="    if False:\n",
            is_simulated=False,
        ),
    ),
    *guards_in(
        "spark_integration/fleet/report_server.py",
        ["tests/stories/test_fleet_member.py"],
        Guard(
            name="fleet: a request that waits is answered when the fleet stops",
            without_it="members learn of the stop too late, and are killed",
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
            name="fleet: a member stops if the driver stays unreachable",
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
            name="fleet: a member whose executor is gone stops",
            without_it="an orphaned process renews its leases until an operator finds it",
            words='                self._on_stop("the executor is gone")\n',
            mutated="                pass\n",
            is_simulated=False,
        ),
        Guard(
            name="fleet: a member that does not stop in time ends its own process",
            without_it="a handler that hangs keeps an orphaned process alive, which renews its "
            "leases",
            words="                self._end_process()\n",
            mutated="                pass\n",
            is_simulated=False,
        ),
    ),
    *guards_in(
        "spark_integration/fleet/task.py",
        ["tests/stories/test_fleet_member.py"],
        Guard(
            name="fleet: a signal is noticed while a handler blocks the event loop",
            without_it="a worker does not end when Spark ends it",
            words="        on_signal(signal.Signals(number).name)\n",
            mutated="        name = signal.Signals(number).name\n"
            "        asyncio.get_running_loop().call_soon(on_signal, name)\n",
            is_simulated=False,
        ),
        Guard(
            name="fleet: a member stops its processor before its task ends",
            without_it="at a stop nothing is checkpointed and handed over",
            words="            await processor.stop()\n",
            mutated="            running.cancel()\n            return\n",
            is_simulated=False,
        ),
    ),
    *guards_in(
        "spark_integration/fleet/jobs.py",
        ["tests/stories/test_fleet_keeping.py"],
        Guard(
            name="fleet: a Spark setting that starts second attempts of tasks is refused",
            without_it="two attempts with one owner id displace each other again and again",
            words='    if is_on("spark.speculation") and',
            mutated="    if False and",
            is_simulated=False,
        ),
        Guard(
            name="fleet: a Spark setting that kills idle workers is refused",
            without_it="every processor is killed again and again",
            words='    if is_on("spark.python.worker.killOnIdleTimeout") and',
            mutated="    if False and",
            is_simulated=False,
        ),
    ),
]
