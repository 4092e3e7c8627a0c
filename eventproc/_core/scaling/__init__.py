"""How many processes a group needs, from successive readings of its checkpoints and its hub."""
