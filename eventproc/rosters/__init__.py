"""Rosters: which processors a group should have, whether they run yet or not.

``eventproc.rosters.kubernetes`` reads them from Kubernetes.
"""

from eventproc._base import public_names as _public_names
from eventproc.rosters._fixed import FixedRoster

__all__ = ["FixedRoster"]

_public_names.set_module(__name__, globals())
