"""The manifest of the tenant tree."""

from pathlib import Path

from better_compute.identity.tenants.methods import (
    create_tenant,
    get_tenant,
    list_children,
    list_tenants,
    lookup_tenant,
)
from better_compute.identity.tenants.schema import TENANT_CREATED
from better_compute.kernel.module import Module

MODULE = Module(
    name="tenants",
    package=Path(__file__).parent,
    requires=("iam",),
    methods=(create_tenant, get_tenant, list_children, list_tenants, lookup_tenant),
    events=(TENANT_CREATED,),
)
