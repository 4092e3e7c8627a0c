"""Placements as text, and the one that a group follows."""

from dataclasses import dataclass

import pytest

from eventproc._core.placement.by_load import ByLoad
from eventproc._core.placement.even import Even
from eventproc._core.placement.names import PLACEMENTS, agreed, most_named, placement_named
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.published import Published, Unavailable
from eventproc._core.placement.ring import Ring
from eventproc._core.placement.weighted import Weighted
from eventproc.errors import ConfigurationError

PLACEMENT_BY_NAME = {
    "Even": Even(),
    "Weighted": Weighted(),
    "Ordinal": Ordinal(),
    "Ordinal:literal=true": Ordinal(literal=True),
    "Ordinal:replicas=4": Ordinal(replicas=4),
    "Ordinal:replicas=4,literal=true": Ordinal(replicas=4, literal=True),
    "Ring": Ring(),
    "Ring:backups=1": Ring(backups=1),
    "Ring:bound=1.25": Ring(bound=1.25),
    "Ring:bound=1.25,backups=2": Ring(bound=1.25, backups=2),
    "Ring:literal=true": Ring(literal=True),
    "Published:Even": Published(Even()),
    "Published:Ring:bound=1.25": Published(Ring(bound=1.25)),
    "Published:ByLoad": Published(ByLoad()),
    "Published:ByLoad:by=events,moves_per_hour=4": Published(ByLoad(by="events", moves_per_hour=4)),
}


@dataclass(frozen=True)
class Fewer(Even):
    """A user's placement."""

    most: int = 3


@pytest.mark.parametrize(("name", "placement"), PLACEMENT_BY_NAME.items())
def test_a_name_and_its_placement_are_each_others_inverse(name, placement):
    """The name has the settings that are not the default; member records store it."""
    assert placement.name == name
    assert placement_named(name) == placement


def test_every_placement_of_the_package_has_a_name():
    """Its class's."""
    assert [*PLACEMENTS] == ["Even", "Weighted", "Ordinal", "Ring", "ByLoad"]
    assert all(cls.__name__ == name for name, cls in PLACEMENTS.items())


def test_a_placement_of_the_user_is_named_with_its_module():
    """Two classes with one name are not the same placement."""
    assert Fewer().name == f"{__name__}.Fewer"
    assert Fewer(most=2).name == f"{__name__}.Fewer:most=2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Evn", r"placement 'Evn' is not known: use one of Even, Weighted, Ordinal, Ring"),
        ("", r"placement '' is not known"),
        ("Published", r"placement 'Published' is not known: .*, or Published: and one of them"),
        ("Published:", r"placement '' is not known"),
        ("Published:Published:Even", r"Published needs the placement that its leader computes"),
        (
            "Ring:bond=2",
            r"'Ring:bond=2': Ring has no setting 'bond'; .* are: backups, bound, literal",
        ),
        ("Even:a=1", r"Even has no setting 'a'; its settings are: none"),
        ("Ring:bound=x", "bound"),
        ("Ring:bound", "bound"),
        ("Ring:literal=yes", "literal"),
        ("Ordinal:replicas=1.5", "replicas"),
        ("Ordinal:replicas=0", "replicas"),
    ],
)
def test_a_wrong_name_is_refused(text, message):
    """The message says what is possible."""
    with pytest.raises(ConfigurationError, match=message):
        placement_named(text)


def test_a_number_or_truth_value_may_be_written_otherwise():
    """As users write them on the command line."""
    assert placement_named("Ring:literal=TRUE,bound=2") == Ring(bound=2, literal=True)
    assert placement_named("Ordinal:literal=False,") == Ordinal()


def test_the_group_follows_what_most_members_name():
    """Whatever this processor itself has."""
    assert agreed(["Ring", "Even", "Ring"], Even()) == Ring()
    assert agreed(["Ring", "Even", "Even"], Ring()) == Even()


def test_of_equally_many_the_first_by_name_counts():
    """All members find the same one."""
    assert agreed(["Ring", "Even"], Ring()) == Even()
    assert agreed(["Even", "Ring"], Ring()) == Even()
    assert most_named(["b", "a", "b", "a", "c"]) == "a"


def test_a_placement_that_this_processor_does_not_have_is_none():
    """It cannot compute the plan of a user's class, or with a setting of a later version."""
    assert agreed(["app.Pinned", "app.Pinned", "Even"], Even()) is None
    assert agreed(["Ring:later=1"], Even()) is None


def test_a_published_placement_that_this_processor_does_not_have_is_followed():
    """Another member computes it."""
    assert agreed(["Published:app.Pinned"], Even()) == Published(Unavailable("app.Pinned"))
    assert agreed(["Published:Ring"], Even()) == Published(Ring())


def test_the_own_placement_is_found_by_its_name():
    """A user's class is no placement of the package."""
    mine = Fewer(most=2)

    assert agreed([mine.name, "Even", mine.name], mine) is mine
    assert agreed([], mine) is mine
