"""Settings that cannot work together are refused, with the remedy."""

import pytest

from eventproc import (
    ByLoad,
    ConfigurationError,
    Even,
    EventProcessorConfig,
    Published,
    ResourceProcessorConfig,
    Ring,
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


def test_a_deployment_is_refused_as_by_the_placement_that_is_published():
    """With a ring, what a new processor would get depends on its own name."""
    with pytest.raises(ConfigurationError, match="with the placement Published:Ring no processor"):
        EventProcessorConfig(placement=Published(Ring()), deployment_id="v2")
    EventProcessorConfig(placement=Published(Even()), deployment_id="v2")
