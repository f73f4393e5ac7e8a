"""The manifest of policies, roles and bindings."""

from pathlib import Path

from better_compute.identity.roles.methods import (
    create_binding,
    create_policy,
    create_role,
    delete_binding,
    delete_policy,
    delete_role,
    get_policy,
    get_role,
    list_bindings,
    list_policies,
    list_roles,
)
from better_compute.kernel.module import Module

MODULE = Module(
    name="roles",
    package=Path(__file__).parent,
    requires=("iam", "people"),
    methods=(
        create_policy,
        get_policy,
        list_policies,
        delete_policy,
        create_role,
        get_role,
        list_roles,
        delete_role,
        create_binding,
        list_bindings,
        delete_binding,
    ),
)
