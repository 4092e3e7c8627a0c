"""Settings that cannot work together are refused, with the remedy."""

import pytest

from eventproc import (
    ByLoad,
    ConfigurationError,
    Even,
    EventProcessorConfig,
    Ordinal,
    Published,
    ResourceProcessorConfig,
    Ring,
    Weighted,
)


def test_a_placement_that_needs_a_leader_is_refused_without_one():
    """Processors that measure for themselves would find different plans."""
    with pytest.raises(ConfigurationError, match=r"use Published\(ByLoad\), as text Published:ByL"):
        EventProcessorConfig(placement=ByLoad())
    EventProcessorConfig(placement=Published(ByLoad()))


def test_resources_are_not_shared_by_load():
    """They make no measured work."""
    with pytest.raises(ConfigurationError, match="the load of a resource is not measured"):
        ResourceProcessorConfig(placement=Published(ByLoad()))
    ResourceProcessorConfig(placement=Published(Even()))


@pytest.mark.parametrize(
    "placement", [Even(), Ring(), Ordinal(), Published(Even()), Published(ByLoad())]
)
def test_a_weight_or_a_capacity_that_the_placement_does_not_use_is_refused(placement):
    """Otherwise an operator takes a small machine for protected."""
    name = placement.name
    with pytest.raises(
        ConfigurationError,
        match=f"capacity is 2 and placement is {name}: only the placement Weighted uses it",
    ):
        EventProcessorConfig(placement=placement, capacity=2)
    with pytest.raises(ConfigurationError, match=r"weight is 0.5 .* or leave the weight out"):
        EventProcessorConfig(placement=placement, weight=0.5)
    EventProcessorConfig(placement=placement, weight=1)


@pytest.mark.parametrize("placement", [Weighted(), Published(Weighted())])
def test_a_weight_and_a_capacity_are_for_the_placement_weighted(placement):
    """Published or not."""
    EventProcessorConfig(placement=placement, weight=0.5, capacity=2)


@pytest.mark.parametrize(
    "placement", [Even(), Weighted(), Ring(), Published(Even()), Published(ByLoad())]
)
def test_an_ordinal_that_the_placement_does_not_use_is_refused(placement):
    """Otherwise an operator takes the partitions of a numbered process for known."""
    with pytest.raises(
        ConfigurationError,
        match=f"ordinal is 0 and placement is {placement.name}: only the placement Ordinal uses it",
    ):
        EventProcessorConfig(placement=placement, ordinal=0)


@pytest.mark.parametrize("placement", [Ordinal(), Published(Ordinal())])
def test_an_ordinal_is_for_the_placement_ordinal(placement):
    """Published or not."""
    EventProcessorConfig(placement=placement, ordinal=0)


def test_a_deployment_is_refused_as_by_the_placement_that_is_published():
    """With a ring, what a new processor would get depends on its own name."""
    with pytest.raises(ConfigurationError, match="placement is Published:Ring: no processor"):
        EventProcessorConfig(placement=Published(Ring()), deployment_id="v2")
    EventProcessorConfig(placement=Published(Even()), deployment_id="v2")
