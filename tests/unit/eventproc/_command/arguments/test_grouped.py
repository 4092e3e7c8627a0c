"""A verb that takes groups of options is a command with one option for each field or setting."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from eventproc._base.settings import PositiveSpan, Within
from eventproc._command.arguments.config_options import PROCESSOR
from eventproc._command.arguments.grouped import ConfigOptions, with_groups
from eventproc._delivery.config import EventProcessorConfig
from eventproc._group.config import REBALANCE_INTERVAL
from eventproc.errors import ConfigurationError
from eventproc.models import EventPosition, LoadBalancingStrategy


@dataclass(frozen=True, kw_only=True)
class Place:
    """Two options."""

    city: Annotated[str, typer.Option(envvar="CITY", metavar="NAME", help="The city.")]
    street: Annotated[str, typer.Option("--road", help="The street.")] = ""


def run(verb, *arguments, **environment):
    """Run a verb as a command; return what it was called with, or raise its error."""
    verb.calls = []
    app = typer.Typer(rich_markup_mode=None)
    app.command()(with_groups(verb))
    done = CliRunner().invoke(app, arguments, env=environment)
    if isinstance(done.exception, ConfigurationError):
        raise done.exception
    return verb.calls or done.output


def travel(
    *,
    place: Place,
    wait: Annotated[timedelta, typer.Option(help="The wait.")] = timedelta(seconds=90),
    rest: Annotated[timedelta | None, typer.Option(help="The rest.")] = None,
) -> int:
    """Travel."""
    travel.calls.append((place, wait, rest))  # type: ignore[attr-defined]
    return 0


def serve(*, config: Annotated[EventProcessorConfig, ConfigOptions(PROCESSOR)]) -> int:
    """Serve."""
    serve.calls.append(config)  # type: ignore[attr-defined]
    return 0


def test_the_fields_of_a_group_are_options():
    """From the command line or the environment, with their defaults."""
    assert run(travel, "--road", "Main", CITY="Bern") == [
        (Place(city="Bern", street="Main"), timedelta(seconds=90), None)
    ]


def test_help_shows_types_defaults_and_environment():
    """And names what is required first; an empty default is not shown."""
    text = " ".join(run(travel, "--help").split())

    assert "--city NAME The city. [env var: CITY; required]" in text
    assert "--road <str> The street. --wait" in text
    assert "--wait DURATION The wait. [default: 90s]" in text
    assert "--rest DURATION The rest. --" in text


def test_a_duration_is_parsed_and_refused_by_the_option_s_name():
    """``--wait``, which typer derives from the parameter."""
    assert run(travel, "--city", "Bern", "--wait", "2m", "--rest", "5s")[0][1:] == (
        timedelta(minutes=2),
        timedelta(seconds=5),
    )
    with pytest.raises(ConfigurationError, match="--wait is 'soon': give a duration"):
        run(travel, "--city", "Bern", "--wait", "soon")
    with pytest.raises(ConfigurationError, match="--wait is ''"):
        run(travel, "--city", "Bern", "--wait", "")


def measure(
    *,
    speed: Annotated[float | None, Within(above=0), typer.Option(help="The speed.")] = None,
    pause: Annotated[PositiveSpan, typer.Option("--rest", help="The pause.")] = timedelta(1),
) -> int:
    """Measure."""
    measure.calls.append((speed, pause))  # type: ignore[attr-defined]
    return 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            (("--speed", value), rf"--speed is {value}: give a number of more than 0")
            for value in ("nan", "inf", "-inf")
        ),
        (("--speed", "0"), r"--speed is 0\.0: give more than 0"),
        (("--rest", "0s"), r"--rest is 0 s: give more than 0 s"),
    ],
)
def test_an_option_with_bounds_refuses_what_is_out_of_them(arguments, message):
    """By its own name; a number that is not finite is in no bounds."""
    assert run(measure, "--speed", "0.5", "--rest", "3s") == [(0.5, timedelta(seconds=3))]
    with pytest.raises(ConfigurationError, match=message):
        run(measure, *arguments)


def test_without_options_the_config_is_the_default_one():
    """No option has a default of its own."""
    assert run(serve) == [EventProcessorConfig()]


def test_options_set_the_settings_of_the_config():
    """Also those of its policies; what is not given stays as it is."""
    (config,) = run(
        serve,
        *("--interval", "100ms", "--expiration", "1s", "--strategy", "balanced"),
        *("--start", "4711", "--checkpoint-events", "7", "--attempts", "3", "--rate", "0.5"),
        *("--static-membership", "--stall-timeout", "1m"),
    )

    assert config.load_balancing_interval == timedelta(milliseconds=100)
    assert config.rebalance_interval == timedelta(milliseconds=100) < REBALANCE_INTERVAL
    assert config.load_balancing_strategy is LoadBalancingStrategy.BALANCED
    assert config.initial_position == EventPosition.from_sequence_number(4711, is_inclusive=True)
    assert config.checkpoint_policy.max_events == 7
    assert config.checkpoint_policy.interval == timedelta(seconds=5)
    assert config.failure_policy.attempts_max == 3
    assert config.rate_max == 0.5
    assert config.static_membership
    assert config.stall_timeout == timedelta(minutes=1)


def test_the_config_refuses_what_its_bounds_refuse():
    """The command has no second set of rules."""
    with pytest.raises(ConfigurationError, match="ownership_expiration"):
        run(serve, "--expiration", "1s")
