"""Rosters: which processors a group should have, whether they run yet or not.

``eventproc.rosters.kubernetes`` reads them from Kubernetes.
"""

from eventproc.rosters._fixed import FixedRoster

__all__ = ["FixedRoster"]
