"""Positions that other programs keep: read for ``checkpoints import --from``.

Rule 1: everything that is read may be hostile: it is bounded, and a malformed record is named and
left out, or refused.
Rule 2: a position here is the *last handled* event, whatever the other program stores.
Rule 3: a record that says "nothing handled yet" never counts as one event handled.
"""
