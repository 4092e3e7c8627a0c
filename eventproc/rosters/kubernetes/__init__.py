"""Rosters that are read from Kubernetes.

Only ``api`` imports ``kubernetes``.
"""

from eventproc.extras import needing

with needing("kubernetes"):
    from eventproc.rosters.kubernetes.replica_set import ReplicaSetRoster
    from eventproc.rosters.kubernetes.stateful_set import StatefulSetRoster

__all__ = ["ReplicaSetRoster", "StatefulSetRoster"]
