"""A whole group on virtual time, for tests of handlers."""
