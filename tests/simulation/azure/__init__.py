"""Processors that follow the rules of the Azure SDKs, in simulated groups."""
