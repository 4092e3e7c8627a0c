"""A Kubernetes API for the tests of this folder."""

import pytest

from tests.integration.kubernetes.played_cluster import PlayedCluster


@pytest.fixture(name="cluster")
def _cluster(tmp_path):
    cluster = PlayedCluster(tmp_path)
    yield cluster
    cluster.close()
