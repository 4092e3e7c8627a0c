"""Rosters: which processors a group should have, whether they run yet or not.

``eventproc.rosters.kubernetes`` reads them from Kubernetes.
"""

from eventproc._base import public as _public
from eventproc.rosters._fixed import FixedRoster

__all__ = ["FixedRoster"]

_public.set_module(__name__, globals())
