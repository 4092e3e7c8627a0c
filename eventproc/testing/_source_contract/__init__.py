"""The contract of the ports ``EventSource`` and ``QueueSource``."""
