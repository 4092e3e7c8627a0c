"""What fakes need of a rehearsal, without faults and of a single process."""

from typing import Any


class Stage:
    """Carries out each request at once."""

    def __init__(self):
        self.repeated: set[object] = set()
        self.tables: dict[str, Any] = {}
        self.effects: list[str] = []

    def now_s(self):
        """The beginning."""
        return 0.0

    def steps(self, owner_id, name, carry_out):
        """Carry out a request at once."""
        carry_out()
        yield 0.0

    def happened(self, owner_id, effect):
        """Keep an effect."""
        self.effects.append(effect)

    def add(self, owner_id, what):
        """No history is kept."""
