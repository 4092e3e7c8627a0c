"""Processors of the Azure SDKs, played by their own rules, in simulated groups."""
