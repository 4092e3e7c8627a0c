"""The promises of a ``Placement``, as a test suite for any placement."""
