"""What successive readings of a group show to an operator: changes, rates, and what is stuck."""
