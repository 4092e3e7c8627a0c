"""Placements: rules that say which member of a group should have which resource."""
