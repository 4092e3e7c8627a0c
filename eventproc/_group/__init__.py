"""The ownership half: the member record, the leases, and the cycle that claims and hands over."""
