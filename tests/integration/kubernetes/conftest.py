"""A Kubernetes API for the tests of this folder."""

import pytest

from tests.integration.kubernetes.fake_cluster import FakeCluster


@pytest.fixture(name="cluster")
def _cluster(tmp_path):
    cluster = FakeCluster(tmp_path)
    yield cluster
    cluster.close()
