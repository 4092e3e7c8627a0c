"""Connections, sessions and links of the emulator's clients."""
