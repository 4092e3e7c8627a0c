"""What runs while a lease is held, and how it is started and ended."""
