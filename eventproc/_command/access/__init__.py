"""How the hub and the storage account are reached: with a key or an identity, and through what."""
