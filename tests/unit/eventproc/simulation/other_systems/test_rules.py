"""The rules of foreign clients: what is known of each, and what holds for every rule."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventproc.simulation.other_systems.rules import ObservedGroup, Record
from eventproc.simulation.other_systems.systems import SYSTEMS

EXPIRATION_S = 60.0

RULES = {name: make().rule for name, make in SYSTEMS.items()}

AZURE = [name for name in RULES if name.startswith("azure-")]


def seen_by(owner_id, held, *, free=0, expired=()) -> ObservedGroup:
    """Return what one of them sees where each has so many; listed are those with live records."""
    owners = [owner for owner, count in held.items() for _ in range(count)]
    records = [
        Record(
            partition_id=str(number),
            owner_id=owner,
            age_s=EXPIRATION_S + 1 if owner in expired else 1.0,
        )
        for number, owner in enumerate(owners)
    ]
    return ObservedGroup(
        owner_id=owner_id,
        partition_ids=[str(number) for number in range(len(owners) + free)],
        records=records,
        expiration_s=EXPIRATION_S,
        listed=sorted({owner_id, *(owner for owner in held if owner not in expired)}),
    )


def owner_of(seen, partition_id):
    """Return the live owner that the rule saw."""
    return seen.owner_by_partition.get(partition_id)


@pytest.mark.parametrize("name", AZURE)
def test_only_python_leaves_4_4_6_as_it_is(name):
    """Of 14 partitions two owners have 4 and one has 6: Python steals below the floor only."""
    seen = seen_by("a", {"a": 4, "b": 4, "c": 6})
    claims = RULES[name](seen, Random(1)).claims

    assert len(claims) == (0 if "python" in name else 1)
    assert all(owner_of(seen, p) == "c" for p in claims)


def test_the_document_stops_before_its_own_example_is_done():
    """18 partitions, 5, 5, 5 and 3: nobody has more than 18 / 4 + 1, so nothing is stolen."""
    seen = seen_by("d", {"a": 5, "b": 5, "c": 5, "d": 3})

    assert RULES["event-processor-load-balancing"](seen, Random(1)).claims == ()


def test_dotnet_waits_at_the_floor_while_anybody_is_below():
    """Of 13 partitions two are free: they are left to the owner of 3, and then to any."""
    rule = RULES["azure-dotnet-greedy"]

    assert rule(seen_by("a", {"a": 4, "b": 4, "c": 3}, free=2), Random(1)).claims == ()
    assert len(rule(seen_by("c", {"a": 4, "b": 4, "c": 3}, free=2), Random(1)).claims) == 1
    assert len(rule(seen_by("a", {"a": 4, "b": 4, "c": 4}, free=1), Random(1)).claims) == 1


def test_javascript_waits_at_the_floor_for_owners_with_too_many():
    """Of 10 partitions four have 4, 3, 2 and 1: the two largest count as having their extra one."""
    seen = seen_by("c", {"a": 4, "b": 3, "c": 2, "d": 1})

    assert RULES["azure-javascript-greedy"](seen, Random(1)).claims == ()


def test_javascript_takes_everything_where_nobody_is():
    """Without a live record it asks for all partitions at once."""
    seen = seen_by("b", {"a": 3}, free=2, expired={"a"})

    assert sorted(RULES["azure-javascript-greedy"](seen, Random(1)).claims) == list("01234")


def test_go_always_takes_the_same_ones():
    """Whatever the chance, the free partitions at the head of the list."""
    seen = seen_by("c", {"a": 4, "b": 4}, free=8)
    claims = {RULES["azure-go-greedy"](seen, Random(seed)).claims for seed in range(20)}

    assert claims == {("8", "9", "10", "11", "12")}


@pytest.mark.parametrize(("name", "count"), [("greedy", 8), ("balanced", 1)])
def test_pythons_own_rule_draws_by_our_seed(name, count):
    """The genuine code, run with our chance: the same seed gives the same claims."""
    seen = seen_by("a", {}, free=32)
    seen = ObservedGroup(
        owner_id="a",
        partition_ids=seen.partition_ids,
        records=[Record(partition_id=str(n), owner_id=o, age_s=1) for n, o in enumerate("bcd")],
        expiration_s=EXPIRATION_S,
    )
    rule = RULES[f"azure-python-{name}"]
    draws = [rule(seen, Random(seed)).claims for seed in (1, 1, 2, 3)]

    assert draws[0] == draws[1]
    assert len(set(draws)) > 1
    assert {len(claims) for claims in draws} == {count}


@pytest.mark.parametrize("name", RULES)
def test_an_expired_record_is_free(name):
    """Everybody takes over from the dead at some time, and from no one else then."""
    rule = RULES[name]
    seen = seen_by("b", {"a": 6, "b": 6, "c": 6}, expired={"c"})
    taken = {p for seed in range(50) for p in rule(seen, Random(seed)).claims}

    assert taken
    if name != "hashring-leases":  # It follows its arcs, and gives away others' partitions.
        assert {owner_of(seen, p) for p in taken} <= {None, "a"}
    assert any(owner_of(seen, p) is None for p in taken)


@st.composite
def groups(draw):
    """Draw a group: who has what, how old it is, and who looks."""
    count = draw(st.integers(1, 12))
    owners = st.sampled_from(["a", "b", "c", "d", None])
    recorded = draw(st.lists(owners, min_size=0, max_size=count))
    return ObservedGroup(
        owner_id=draw(st.sampled_from("abcde")),
        partition_ids=[str(number) for number in range(count)],
        records=[
            Record(
                partition_id=str(number),
                owner_id=owner,
                age_s=draw(st.sampled_from([0.0, 59.0, 61.0, 1000.0])),
            )
            for number, owner in enumerate(recorded)
        ],
        expiration_s=EXPIRATION_S,
        listed=list("abcde"),
    )


@given(name=st.sampled_from(list(RULES)), seen=groups(), seed=st.integers(0, 1000))
def test_what_any_rule_keeps_to(name, seen, seed):
    """It claims what is there and not its own, once; and it is a function of what it is given."""
    before = (tuple(seen.records), tuple(seen.partition_ids))
    answer = RULES[name](seen, Random(seed))

    assert len(set(answer.claims)) == len(answer.claims)
    assert set(answer.claims) <= set(seen.partition_ids) - set(seen.mine)
    assert set(answer.releases) <= set(seen.mine)
    assert RULES[name](seen, Random(seed)) == answer
    assert (tuple(seen.records), tuple(seen.partition_ids)) == before


CAREFUL = [name for name in AZURE if "balanced" in name] + [
    "azure-dotnet-greedy",
    "azure-java-greedy",
    "event-processor-load-balancing",
]


@given(name=st.sampled_from(CAREFUL), seen=groups(), seed=st.integers(0, 1000))
def test_at_most_one_claim_in_a_cycle(name, seen, seed):
    """Those that say so."""
    assert len(RULES[name](seen, Random(seed)).claims) <= 1
