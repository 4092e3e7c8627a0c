"""Connections to Azure's storage accounts: what the stores and the dead letters share."""
