"""Who must see a pool, against random trees of tenants and random offers."""

from hypothesis import given
from hypothesis import strategies as st

from better_compute.modules.pools.rules import reached, without_holder

TENANTS = ["t0", "t1", "t2", "t3", "t4", "t5"]
PARENTS = st.tuples(*(st.integers(-1, index - 1) for index in range(len(TENANTS))))
"""Each tenant's parent among those before it; -1 for none."""
OFFERS = st.dictionaries(st.sampled_from(TENANTS), st.booleans(), max_size=4)
INACTIVE = st.sets(st.sampled_from(TENANTS), max_size=2)


def ancestors(parents: tuple[int, ...], tenant: str) -> list[str]:
    """Nearest first."""
    found: list[str] = []
    index = parents[TENANTS.index(tenant)]
    while index >= 0:
        found.append(TENANTS[index])
        index = parents[index]
    return found


def below(parents: tuple[int, ...], inactive: set[str], offers: dict[str, bool]) -> dict[str, frozenset[str]]:
    """The active tenants below each holder; one below an inactive tenant is inactive too."""
    active = {tenant for tenant in TENANTS if not inactive & {tenant, *ancestors(parents, tenant)}}
    return {
        holder: frozenset(tenant for tenant in active if holder in ancestors(parents, tenant))
        for holder, reaching in offers.items()
        if reaching
    }


@given(PARENTS, OFFERS, INACTIVE)
def test_views_follow_the_tree(parents: tuple[int, ...], offers: dict[str, bool], inactive: set[str]) -> None:
    tree = below(parents, inactive, offers)
    seen = reached(offers, tree, owner="owner", current={})
    for tenant in TENANTS:
        holders = [one for one in reversed(ancestors(parents, tenant)) if tenant in tree.get(one, ())]
        assert (tenant in seen) == (tenant in offers or bool(holders))
        assert list(seen.get(tenant, ())) == holders


@given(PARENTS, OFFERS, INACTIVE)
def test_looking_twice_is_looking_once(parents: tuple[int, ...], offers: dict[str, bool], inactive: set[str]) -> None:
    tree = below(parents, inactive, offers)
    once = reached(offers, tree, owner="t5", current={})
    assert "t5" not in once
    assert reached(offers, tree, owner="t5", current=once) == once
    assert reached(offers, {}, owner="t5", current=once).keys() == once.keys()


@given(PARENTS, OFFERS, st.sampled_from(TENANTS))
def test_withdrawing_a_grant_is_as_if_it_had_never_been(
    parents: tuple[int, ...], offers: dict[str, bool], holder: str
) -> None:
    rest = {tenant: reaching for tenant, reaching in offers.items() if tenant != holder}
    everybody = reached(offers, below(parents, set(), offers), owner="owner", current={})
    without = reached(rest, below(parents, set(), rest), owner="owner", current={})
    assert without_holder(everybody, holder, offered=list(rest)) == without
