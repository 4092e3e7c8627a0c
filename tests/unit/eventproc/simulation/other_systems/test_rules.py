"""The balancing rules of other systems: what is known of each, and what holds for all."""

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
    """Return what one member sees of a group in which each owner holds so many partitions."""
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
    """Return the live owner that the rule sees."""
    return seen.owner_by_partition.get(partition_id)


@pytest.mark.parametrize("name", AZURE)
def test_only_python_leaves_owners_at_4_4_and_6(name):
    """It steals only for a member below the minimum, and 14 div 3 is 4."""
    seen = seen_by("a", {"a": 4, "b": 4, "c": 6})
    claims = RULES[name](seen, Random(1)).claims

    assert len(claims) == (0 if "python" in name else 1)
    assert all(owner_of(seen, p) == "c" for p in claims)


def test_the_documented_algorithm_leaves_owners_at_5_5_5_and_3():
    """It steals only from an owner with more than 18 / 4 + 1 partitions."""
    seen = seen_by("d", {"a": 5, "b": 5, "c": 5, "d": 3})

    assert RULES["event-processor-load-balancing"](seen, Random(1)).claims == ()


def test_dotnet_waits_at_the_minimum_while_a_member_is_below_it():
    """Two free partitions of 13 are left to the owner of 3, and then to any owner."""
    rule = RULES["azure-dotnet-greedy"]

    assert rule(seen_by("a", {"a": 4, "b": 4, "c": 3}, free=2), Random(1)).claims == ()
    assert len(rule(seen_by("c", {"a": 4, "b": 4, "c": 3}, free=2), Random(1)).claims) == 1
    assert len(rule(seen_by("a", {"a": 4, "b": 4, "c": 4}, free=1), Random(1)).claims) == 1


def test_javascript_waits_at_the_minimum_for_owners_above_it():
    """Of 4, 3, 2 and 1 partitions, the two largest count as having the extra ones."""
    seen = seen_by("c", {"a": 4, "b": 3, "c": 2, "d": 1})

    assert RULES["azure-javascript-greedy"](seen, Random(1)).claims == ()


def test_javascript_claims_everything_if_there_is_no_live_record():
    """All partitions at once."""
    seen = seen_by("b", {"a": 3}, free=2, expired={"a"})

    assert sorted(RULES["azure-javascript-greedy"](seen, Random(1)).claims) == list("01234")


def test_go_always_claims_the_first_free_partitions():
    """Whatever the random numbers are."""
    seen = seen_by("c", {"a": 4, "b": 4}, free=8)
    claims = {RULES["azure-go-greedy"](seen, Random(seed)).claims for seed in range(20)}

    assert claims == {("8", "9", "10", "11", "12")}


@pytest.mark.parametrize(("name", "count"), [("greedy", 8), ("balanced", 1)])
def test_the_genuine_python_rule_uses_the_seed_of_the_simulation(name, count):
    """The same seed gives the same claims."""
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
def test_partitions_with_expired_records_are_claimed(name):
    """Sooner or later by each rule; of live owners' partitions only those of the largest."""
    rule = RULES[name]
    seen = seen_by("b", {"a": 6, "b": 6, "c": 6}, expired={"c"})
    taken = {p for seed in range(50) for p in rule(seen, Random(seed)).claims}

    assert taken
    if name != "hashring-leases":  # It follows its arcs, and gives away others' partitions.
        assert {owner_of(seen, p) for p in taken} <= {None, "a"}
    assert any(owner_of(seen, p) is None for p in taken)


@st.composite
def groups(draw):
    """Draw a group: its owners, the ages of its records, and the member that decides."""
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
def test_every_rule_claims_existing_partitions_of_others_once(name, seen, seed):
    """It is a pure function: the same input gives the same claims and is not changed."""
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
def test_rules_that_claim_one_partition_per_cycle_do_so(name, seen, seed):
    """Those whose documentation says so."""
    assert len(RULES[name](seen, Random(seed)).claims) <= 1
