"""Rosters: which processors a group should have, whether they run yet or not.

``eventproc.rosters.kubernetes`` reads them from Kubernetes. Layers, each of which imports only
those below it:

- ``kubernetes``, ``fixed``
- ``roster``
"""

from eventproc.rosters.fixed import FixedRoster
from eventproc.rosters.roster import Roster

__all__ = ["FixedRoster", "Roster"]
