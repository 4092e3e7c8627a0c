"""Processors of the Azure SDKs, played by their published rules, to compare with."""
