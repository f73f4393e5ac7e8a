"""What a quota's numbers mean, for owners, offered tenants and tenants that share in a grant."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from better_compute.modules.quotas.rules import Chain, asked, fits, limits, standings


@dataclass(frozen=True)
class Row:
    tenant_id: str
    resource: str
    max: int | None
    used: int


OWNER = Chain("root", owns_pool=True)
OFFERED = Chain("acme", owns_pool=False)
SHARING = Chain("kid", owns_pool=False, holders=("acme", "middle"))


def told(chain: Chain, *rows: Row) -> list[tuple[str, int | None, int, int | None]]:
    return [(one.resource, one.max, one.used, one.available) for one in standings(chain, rows)]


def test_an_owner_without_a_maximum_has_no_limit() -> None:
    assert told(OWNER, Row("root", "gpu", None, 3)) == [("gpu", None, 3, None)]
    assert limits(OWNER, [Row("root", "gpu", None, 3)]) == {}
    assert told(OWNER, Row("root", "gpu", 2, 3)) == [("gpu", 2, 3, 0)]


def test_a_row_without_a_maximum_grants_nothing_to_an_offered_tenant() -> None:
    assert told(OFFERED, Row("acme", "gpu", None, 3)) == [("gpu", 0, 3, 0)]
    assert told(OFFERED, Row("acme", "gpu", 4, 3)) == [("gpu", 4, 3, 1)]


def test_a_sharing_tenant_is_limited_by_every_maximum_of_its_chain() -> None:
    rows = [Row("acme", "gpu", 10, 7), Row("middle", "gpu", 5, 1), Row("kid", "gpu", None, 1)]
    assert told(SHARING, *rows) == [("gpu", 5, 1, 3)]
    assert told(SHARING, Row("middle", "gpu", 5, 1)) == []
    assert [one.missing for one in fits(SHARING, [Row("middle", "gpu", 5, 1)], {"gpu": 1})] == [1]


def test_the_limit_that_binds_is_named() -> None:
    rows = [Row("acme", "gpu", 10, 7), Row("middle", "gpu", 5, 4)]
    (one,) = fits(SHARING, rows, {"gpu": 2})
    assert (one.limit_tenant_id, one.max, one.used, one.available, one.missing) == ("middle", 5, 4, 1, 1)


AMOUNT = st.integers(0, 20)
MAYBE = st.none() | AMOUNT


@given(
    st.lists(st.tuples(st.sampled_from(["acme", "middle", "kid"]), MAYBE, AMOUNT), unique_by=lambda row: row[0]), AMOUNT
)
def test_what_fits_is_what_is_available(rows: list[tuple[str, int | None, int]], amount: int) -> None:
    stored = [Row(tenant, "gpu", maximum, used) for tenant, maximum, used in rows]
    for one in fits(SHARING, stored, asked({"gpu": amount}, 1)):
        assert one.available is not None
        assert one.missing == max(amount - one.available, 0)
        (told_room,) = [row.available for row in standings(SHARING, stored)] or [0]
        assert one.available == told_room
