"""Transactions of handlers: their rows, the position and the state are committed together."""
