"""``Published`` takes its answers from the placement that it publishes."""

import pytest

from eventproc._core.placement.even import Even
from eventproc._core.placement.ordinal import Ordinal
from eventproc._core.placement.placement import MemberFacts
from eventproc._core.placement.published import Published, Unavailable
from eventproc._core.placement.ring import Ring
from eventproc.errors import ConfigurationError


@pytest.mark.parametrize("inner", [Even(), Ring(), Ordinal()])
def test_it_is_as_the_placement_that_is_computed(inner):
    """Except that it admits no processor of an Azure SDK, which would not follow."""
    published = Published(inner)

    assert published.is_sticky is inner.is_sticky
    assert published.admits_standby is inner.admits_standby
    assert not published.admits_foreign


def test_what_the_inner_placement_needs_is_checked():
    """An ordinal, for example."""
    Published(Ordinal()).check(MemberFacts(ordinal=1))
    with pytest.raises(ConfigurationError, match="ordinal"):
        Published(Ordinal()).check(MemberFacts())


@pytest.mark.parametrize("inner", [Published(Even()), "Even", Even, None])
def test_there_must_be_a_placement_to_publish(inner):
    """The message shows how to write it."""
    with pytest.raises(ConfigurationError, match=r"as Published\(Even\(\)\)"):
        Published(inner)


def test_a_processor_without_the_inner_placement_cannot_lead():
    """It knows its name alone."""
    published = Published(Unavailable("app.Own"))

    assert (published.name, published.can_lead) == ("Published:app.Own", False)
    assert Published(Even()).can_lead
