"""Each setting of each public class is checked against its annotation when a value is built."""

import inspect
import math
import time
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from hypothesis import given
from hypothesis import strategies as st

from checkpointstores.blob import BlobCheckpointStore
from checkpointstores.memory import MemoryAccount, MemoryCheckpointStore
from checkpointstores.sqlite import SqliteCheckpointStore
from eventproc import (
    Backoff,
    CheckpointPolicy,
    ConfigurationError,
    ConsumerGroup,
    EventPosition,
    EventProcessor,
    EventProcessorConfig,
    FailureAction,
    FailurePolicy,
    LoadBalancingStrategy,
    PartitionHandler,
)
from eventproc._base.network import HttpProxy
from eventproc._base.settings import SECRET as HIDDEN
from eventproc._base.settings import checked
from eventproc._simulation import Action, PriceList, Script, ScriptedEvent
from eventproc.admin import CheckpointMove
from eventproc.dead_letters import FunctionDeadLetterSink
from eventproc.dead_letters.blob import BlobDeadLetterSink
from eventproc.emulator import EmulatorConfiguration, HubConfiguration, Retention
from eventproc.sources.eventhubs import (
    EventHubDeadLetterSink,
    EventHubOptions,
    EventHubSource,
)
from eventproc.sources.kafka import KafkaEventSource, KafkaOptions
from eventproc.sources.memory import MemoryEventSource, MemoryHub
from eventproc.testing import HandlerTestHarness, StoreFaults
from spark_integration import NetworkRecipe, Secret, SourceRecipe, StoreRecipe, run_on_executors
from spark_integration._sink.options import GroupRecipe, SinkOptions

SECRET = Secret("env:HUB")
KEY = AzureNamedKeyCredential("name", "key")
GROUP = GroupRecipe(consumer_group="g", connection=SECRET)
SQLITE = StoreRecipe(spec="sqlite:x")


class Idle(PartitionHandler):
    """Handles events without doing anything."""

    async def process_event(self, context, event):
        """Do nothing."""


CLASSES = [
    (Backoff, {}),
    (CheckpointPolicy, {}),
    (ConsumerGroup, {"fully_qualified_namespace": "n", "eventhub_name": "h"}),
    (EmulatorConfiguration, {"hubs": (HubConfiguration("h"),)}),
    (EventHubOptions, {}),
    (EventPosition, {}),
    (EventProcessorConfig, {}),
    (FailurePolicy, {}),
    (GroupRecipe, {"consumer_group": "g", "connection": SECRET}),
    (HttpProxy, {"host": "h", "port": 1}),
    (HubConfiguration, {"name": "h"}),
    (KafkaOptions, {}),
    (CheckpointMove, {"partition_id": "0", "offset": "1", "sequence_number": 1}),
    (PriceList, {}),
    (Retention, {}),
    (Script, {"partition_count": 1, "processor_count": 1}),
    (ScriptedEvent, {"action": Action.JOIN, "count": 1}),
    (Secret, {"reference": "x"}),
    (SinkOptions, {"handler": "a:B", "group": GROUP, "store": SQLITE}),
    (NetworkRecipe, {}),
    (SourceRecipe, {"connection": SECRET}),
    (StoreFaults, {}),
    (StoreRecipe, {"spec": "sqlite:x"}),
]
"""Settings classes, each with its required settings."""

BLOB = {"account_url": "https://a.blob.core.windows.net", "container": "abc"}
HUB = {"fully_qualified_namespace": "n.servicebus.windows.net", "eventhub_name": "h"}

FUNCTIONS = [
    (BlobCheckpointStore, BLOB),
    (BlobDeadLetterSink, BLOB),
    (EventHubDeadLetterSink, {**HUB, "credential": KEY}),
    (EventHubSource, {**HUB, "credential": KEY}),
    (
        EventProcessor,
        {
            "source": MemoryEventSource(MemoryHub()),
            "store": MemoryCheckpointStore(),
            "handler": Idle,
        },
    ),
    (FunctionDeadLetterSink, {"function": print}),
    (HandlerTestHarness, {"handler": Idle}),
    (KafkaEventSource, {"bootstrap_servers": "localhost:1", "topic": "t"}),
    (MemoryAccount, {}),
    (MemoryCheckpointStore, {}),
    (MemoryEventSource, {"hub": MemoryHub()}),
    (MemoryHub, {}),
    (SqliteCheckpointStore, {"path": "x.db"}),
    (
        run_on_executors,
        {
            "spark": None,
            "processors": 1,
            "source": SourceRecipe(connection=SECRET),
            "store": SQLITE,
            "handler": Idle,
        },
    ),
]
"""Functions and classes whose arguments are settings, each with its required ones."""

UNCHECKED = {"spark"}
"""Its class is not imported before it is needed."""


class OfNoSettingsType:
    """Of a type that no setting has."""


def build(what, **settings):
    """Build it of values that a type checker would refuse."""
    return what(**settings)


def settings_of(what):
    """Return the names of the settings of a class or function."""
    return [each for each in inspect.signature(what).parameters if each not in UNCHECKED]


def pairs(table):
    """Return each class with each of its settings, and the required ones."""
    return [
        pytest.param(what, name, given, id=f"{what.__name__}-{name}")
        for what, given in table
        for name in settings_of(what)
    ]


@pytest.mark.parametrize(("what", "name", "given"), pairs(CLASSES + FUNCTIONS))
def test_each_setting_refuses_a_value_of_the_wrong_type(what, name, given):
    """The message begins with the setting's name, and says what to give."""
    with pytest.raises(ConfigurationError, match=rf"^{name} is .*: give ."):
        what(**{**given, name: OfNoSettingsType()})


REFUSALS = {CheckpointMove: [ValueError]}
"""What else a class may raise: checkpoint values have checks and errors of their own."""

ARBITRARY_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.timedeltas(),
    st.datetimes(),
    st.lists(st.integers()),
    st.tuples(st.text()),
    st.dictionaries(st.text(), st.text()),
    st.sampled_from([int, ValueError, FailureAction.SKIP, FailurePolicy(), OfNoSettingsType()]),
)


@pytest.mark.parametrize(("what", "required"), CLASSES)
@given(data=st.data())
def test_any_value_is_accepted_as_it_is_or_refused_with_configuration_error(what, required, data):
    """No value raises another error or is converted to another type."""
    name = data.draw(st.sampled_from(settings_of(what)))
    value = data.draw(ARBITRARY_VALUES)
    try:
        built = what(**{**required, name: value})
    except (ConfigurationError, *REFUSALS.get(what, ())):
        return

    assert type(getattr(built, name)) is type(value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"load_balancing_strategy": "ballanced"},
            "give 'balanced', 'greedy', 'cooperative' or 'release' (LoadBalancingStrategy)",
        ),
        ({"failure_policy": None}, "failure_policy is None: give a FailurePolicy"),
        ({"key_concurrency": "4"}, "key_concurrency is '4': give a whole number of 1 or more"),
        ({"key_concurrency": True}, "key_concurrency is True: give a whole number of 1 or more"),
        ({"idle_timeout": 5}, "idle_timeout is 5: give a timedelta of more than 0 s or None"),
        ({"rate_max": math.nan}, "rate_max is nan: give a positive number of events a second"),
        ({"rate_max": math.inf}, "rate_max is inf: give a positive number of events a second"),
        ({"rate_max": True}, "rate_max is True: give a positive number of events a second"),
        ({"static_membership": 1}, "static_membership is 1: give True or False"),
        ({"key_selector": "name"}, "key_selector is 'name': give a function"),
        (
            {"initial_positions": {"0": "latest"}},
            "initial_positions is {'0': 'latest'}: give a mapping from text to an EventPosition",
        ),
        (
            {"initial_positions": {0: EventPosition.latest()}},
            "give a mapping from text to an EventPosition",
        ),
        ({"drain_delay": timedelta(-1)}, "give 0 s or more"),
    ],
)
def test_the_error_has_the_value_and_what_is_allowed(given, message):
    """So that one line is enough to correct the setting."""
    with pytest.raises(ConfigurationError) as refused:
        EventProcessorConfig(**given)

    assert message in str(refused.value)


def test_the_text_of_an_enum_member_is_converted_to_the_member():
    """For example ``"balanced"``."""
    config = build(EventProcessorConfig, load_balancing_strategy="balanced")

    assert config.load_balancing_strategy is LoadBalancingStrategy.BALANCED
    assert build(FailurePolicy, action="skip").action is FailureAction.SKIP


def test_transient_errors_are_classes_in_a_tuple():
    """One class alone, or an instance, would never match."""
    for wrong in (OSError, [OSError], (OSError("x"),), (KeyboardInterrupt,)):
        with pytest.raises(ConfigurationError, match=r"transient is .*a subclass of Exception"):
            build(FailurePolicy, transient=wrong)


def test_no_message_shows_a_secret():
    """Keys that were given in the wrong place or type do not reach a log."""
    key = "Endpoint=sb://h;SharedAccessKey=hush"
    tries: list[tuple[Any, dict[str, Any]]] = [
        (SourceRecipe, {"connection": key}),
        (StoreRecipe, {"spec": "blob:x", "storage": key}),
        (NetworkRecipe, {"proxy": key}),
        (NetworkRecipe, {"proxy": Secret(f"http://anna:{key}@")}),
        (HttpProxy, {"host": "h", "port": 1, "password": key.encode()}),
        (EventHubSource.from_connection_string, {"conn_str": key.encode()}),
        (BlobCheckpointStore, {**BLOB, "credential": [key]}),
        (KafkaEventSource, {"bootstrap_servers": "b:1", "topic": "t", "config": [key]}),
    ]
    for what, settings in tries:
        with pytest.raises(ConfigurationError) as refused:
            build(what, **settings)

        assert "hush" not in str(refused.value)


def test_no_message_shows_an_optional_secret():
    """``| None`` around the type of a secret does not make it visible."""

    @checked
    def connect(key: Annotated[str, HIDDEN] | None = None) -> bool:
        """Whether there is a key."""
        return key is not None

    with pytest.raises(ConfigurationError, match="key is a bytes: give text or None") as refused:
        build(connect, key=b"hush")

    assert "hush" not in str(refused.value)
    assert (connect(), connect("hush")) == (False, True)


@pytest.mark.parametrize("keys", [["hush", 7], {"a": "hush", "b": 7}, b"hush"])
def test_no_message_shows_a_container_of_secrets(keys):
    """A list or a mapping that holds secrets is a secret, also if only one of them is wrong."""

    @checked
    def connect(keys: list[Annotated[str, HIDDEN]] | dict[str, Annotated[str, HIDDEN]]) -> None:
        """Use the keys."""

    with pytest.raises(ConfigurationError, match=f"keys is a {type(keys).__name__}: give a list"):
        connect(keys)


def test_a_checked_function_keeps_its_signature():
    """Its name, parameters and defaults, and Python's error for a call that does not fit."""

    @checked
    def double(number: int = 2, *others: str) -> int:
        """Double a number."""
        return 2 * number

    assert (double(), double(4), double.__doc__) == (4, 8, "Double a number.")
    assert str(inspect.signature(double)) == "(number: int = 2, *others: str) -> int"
    with pytest.raises(TypeError, match="double"):
        build(double, nothing=1)


def test_values_built_from_text_and_from_a_member_are_equal():
    """Checks add no fields to a settings class."""
    as_text, as_member = {"action": "skip"}, {"action": FailureAction.SKIP}

    assert build(FailurePolicy, **as_text) == build(FailurePolicy, **as_member)
    assert {each.name for each in fields(Backoff)} == {"initial", "maximum"}


def test_paths_clocks_random_sources_and_whole_numbers_are_accepted(tmp_path):
    """A path may be text or a ``Path``, and a whole number is a number."""
    SqliteCheckpointStore(Path(tmp_path) / "a.db")
    MemoryAccount(now=datetime.now)
    config = EventProcessorConfig(rate_max=5)
    processor = EventProcessor(
        source=MemoryEventSource(MemoryHub()),
        store=MemoryCheckpointStore(),
        handler=Idle,
        config=config,
        rng=Random(1),
        clock=time.monotonic,
    )

    assert processor.consumer_group.name == "$Default"
