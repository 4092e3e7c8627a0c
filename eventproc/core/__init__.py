"""Decisions as functions of values: no clock, no chance, no input or output, no log."""
