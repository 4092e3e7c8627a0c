"""How one run of a processor is put together: the store's thread, signals, both halves."""
