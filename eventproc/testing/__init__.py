"""What eventproc is tested with, for those who test their own stores, sources and handlers."""
