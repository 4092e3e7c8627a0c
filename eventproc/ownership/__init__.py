"""Which partitions are mine? Members, leases, and the cycle that shares partitions out."""
