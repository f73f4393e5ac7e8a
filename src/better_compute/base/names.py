r"""The grammars of the names that people choose.

All of them are ASCII on purpose: names end up in host names, file names, labels and policies, where look-alike letters
would let one thing pass for another. The patterns are anchored at the true end of the text, so that `"fra\n"` is not a
name. They are written so that Python's `re` (with `fullmatch`) and pydantic's engine read them alike.
"""

from typing import Final

SITE_NAME: Final = r"^[a-z0-9._-]{1,63}$"
"""Sites, pools, provider accounts, templates (seed 000, The document)."""

REGION: Final = r"^[a-z0-9-]{1,64}$"
"""Regions, IAM regions too (seed 000, sites)."""

GPU_MODEL: Final = r"^[A-Za-z0-9-]{1,32}$"
"""A GPU model such as `L40S`; its lower-case form names the meter (seed 003)."""

FLAVOR_NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,62}$"
"""A flavor within its pool, such as `gpu1.l40s`."""

RESOURCE_NAME: Final = r"^[A-Za-z][A-Za-z0-9._-]{0,63}$"
"""A quota key such as `vcpu` or `memoryGiB` (seed 000)."""

DNS_LABEL: Final = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
"""A project or an instance: what a host may be called."""

SLUG: Final = DNS_LABEL
"""The readable alias of a tenant."""

TENANT_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
"""A tenant's id: opaque, made by the IAM, so only what could break a path or a log line is refused."""

IDEMPOTENCY_KEY: Final = r"^[\x21-\x7e]{1,255}$"
"""Printable ASCII without spaces, as HTTP headers could carry it."""

IN_WORDS: Final = {
    SITE_NAME: "1 to 63 of the characters a-z, 0-9, '.', '_' and '-'",
    REGION: "1 to 64 of the characters a-z, 0-9 and '-'",
    GPU_MODEL: "1 to 32 of the characters A-Z, a-z, 0-9 and '-'",
    FLAVOR_NAME: "a letter a-z or a digit, then at most 62 of a-z, 0-9, '.', '_' and '-'",
    RESOURCE_NAME: "a letter, then at most 63 of A-Z, a-z, 0-9, '.', '_' and '-'",
    DNS_LABEL: "at most 63 of the characters a-z, 0-9 and '-', without '-' at either end",
    TENANT_ID: "the id of a tenant: at most 128 of A-Z, a-z, 0-9, '.', '_', ':' and '-'",
    IDEMPOTENCY_KEY: "1 to 255 printable ASCII characters without spaces",
}
"""Each grammar as an error message tells it."""
