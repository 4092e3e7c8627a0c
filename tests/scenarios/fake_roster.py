"""A roster whose members and answers a scenario decides."""

from datetime import timedelta

from eventproc import Roster, RosterUnavailableError


class FakeRoster(Roster):
    """Names what the scenario has put into a list that all processors share."""

    interval = timedelta(seconds=10)
    patience = timedelta(seconds=60)

    def __init__(self, world: "FakeCluster", own_id: str) -> None:
        self.world = world
        self.own_id: str = own_id
        self.is_open = False

    async def open(self) -> None:
        """Note that it is open."""
        self.is_open = True

    async def close(self) -> None:
        """Note that it is closed."""
        self.is_open = False

    async def owner_ids(self) -> frozenset[str]:
        """Answer what the scenario says, and count the request."""
        self.world.requests.append(self.own_id)
        if self.world.error is not None:
            raise self.world.error
        return frozenset(self.world.names)


class FakeCluster:
    """What all rosters of a scenario read."""

    def __init__(self, names) -> None:
        self.names = list(names)
        self.requests: list[str] = []
        self.error: Exception | None = None

    def goes_away(self) -> None:
        """From now on there is no answer."""
        self.error = RosterUnavailableError("the API server is away")

    def comes_back(self) -> None:
        """From now on there are answers again."""
        self.error = None

    def roster(self, own_id: str) -> FakeRoster:
        """Return the roster of one processor."""
        return FakeRoster(self, own_id)
