"""The generation of the IAM's data: one number that every committed change moves."""

from typing import Final

from better_compute.db.query import Query

GENERATION: Final = Query(
    name="iam.generation",
    sql="select value from iam.generation",
    row=int,
    crosses_tenants="one number for the whole deployment",
)
