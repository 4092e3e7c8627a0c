"""The roster of the demo's pods, which run in no cluster: a file says where the API server is."""

import os
from datetime import timedelta

from eventproc.cli.demo.rabbitmq.api_server import NAMESPACE
from eventproc.rosters.kubernetes import StatefulSetRoster

roster = StatefulSetRoster(
    namespace=NAMESPACE,
    kubeconfig=os.environ.get("KUBECONFIG", ""),
    interval=timedelta(seconds=1),
    patience=timedelta(seconds=15),
)
