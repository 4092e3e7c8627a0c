"""The hubs that the emulator keeps: partitions, events, files."""
