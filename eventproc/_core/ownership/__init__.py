"""The decisions of the ownership half: who owns what, and what one processor writes for it."""
