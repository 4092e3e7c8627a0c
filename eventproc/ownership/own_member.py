"""Makes a processor's member record from its configuration."""

from eventproc.config import GroupConfig
from eventproc.core.placement.state import MemberFacts, ordinal_in
from eventproc.models import Member, OffsetFormat
from eventproc.version import EVENTPROC_VERSION


def own_member(config: GroupConfig, owner_id: str, offset_format: OffsetFormat) -> Member:
    """Return the record of a processor that has not started, which has no incarnation.

    *owner_id* is the user's, or empty: the number at its end is the ordinal, unless the
    configuration has one: ``consumer-3``.

    Raises:
        ConfigurationError: the placement needs a setting that the configuration lacks.
    """
    member = Member(
        owner_id=owner_id,
        incarnation="",
        hands_over=config.load_balancing_strategy.lets_go,
        weight=config.weight,
        capacity=config.capacity,
        ordinal=ordinal_in(owner_id) if config.ordinal is None else config.ordinal,
        placement=config.placement.name,
        deployment_id=config.deployment_id,
        offset_format=offset_format,
        version=EVENTPROC_VERSION,
    )
    config.placement.check(MemberFacts.of(member))
    return member
