"""What one member of a group is: its status, its rivals, and whether it is expected or waits."""
