"""Processors of other SDKs, played by their published rules, to compare with."""
