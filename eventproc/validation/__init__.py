"""Checks of a processor's arguments, when it is built or started."""
