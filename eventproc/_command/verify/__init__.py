"""What eventproc assumes of Event Hubs and Blob Storage, as checks, for ``eventproc verify``.

The emulator's own tests run the same checks.
"""
