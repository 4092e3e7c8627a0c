"""Rosters: which processors a group should have, whether they run yet or not.

``eventproc.rosters.kubernetes`` reads them from Kubernetes.
"""

from eventproc._base.public import set_public_module
from eventproc.rosters._fixed import FixedRoster

__all__ = ["FixedRoster"]

set_public_module(__name__, globals())
