"""``--roster``: which processors the group should have."""

from typing import Annotated, TypeAlias

import typer

from eventproc.cli.arguments.modules import instance_of
from eventproc.errors import ConfigurationError
from eventproc.ports import Roster

KUBERNETES = {"statefulset": "StatefulSetRoster", "replicaset": "ReplicaSetRoster"}

RosterOption: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="EVENTPROC_ROSTER",
        metavar="ROSTER",
        help="Which processes the group should have, whether they run yet or not: statefulset or "
        "replicaset, read from Kubernetes for this pod, or MODULE:NAME for a Roster of your own. "
        "Only with --placement Published:... Leave --owner-id out: it is the name of the pod.",
    ),
]


def make_roster(text: str) -> Roster | None:
    """Return the roster that ``--roster`` names; ``None`` for an empty text.

    Raises:
        ConfigurationError: there is no such roster; the message says what is possible.
    """
    if not text:
        return None
    place = f"eventproc.rosters.kubernetes:{KUBERNETES[text]}" if text in KUBERNETES else text
    return instance_of(Roster, "--roster", text, place, " or ".join(KUBERNETES))  # type: ignore[type-abstract]


def check_supervised(text: str) -> None:
    """Refuse rosters that have one name for all workers of a supervisor.

    Raises:
        ConfigurationError: ``--roster`` reads the names of pods.
    """
    if text in KUBERNETES:
        raise ConfigurationError(
            f"--roster {text} has the names of pods, and with --workers each pod has several "
            "members: leave --workers out and start more pods, or give MODULE:NAME of a Roster "
            "that names each worker, such as pod-0-0 and pod-0-1"
        )
