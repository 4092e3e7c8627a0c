"""Pictures of a simulated group: as text and as a plot."""
