"""``eventproc checkpoints``: a group's positions, looked at, moved, written to a file and back."""
