"""Decisions as pure functions of values: no clock, no randomness, no I/O, no logging."""
