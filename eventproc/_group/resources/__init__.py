"""Named resources: connections, licence keys, jobs, tenants; each has one holder in a group."""
