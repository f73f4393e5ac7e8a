"""The manifest of policies, roles, bindings and groups."""

from pathlib import Path

from better_compute.identity.roles.methods.bindings import create_binding, delete_binding, list_bindings
from better_compute.identity.roles.methods.policies import (
    create_policy,
    create_role,
    delete_policy,
    delete_role,
    get_policy,
    get_role,
    list_policies,
    list_roles,
)
from better_compute.identity.roles.methods.subjects import (
    add_member,
    create_group,
    delete_group,
    get_group,
    list_groups,
    list_members,
    remove_member,
    set_boundary,
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
        create_group,
        get_group,
        list_groups,
        delete_group,
        add_member,
        remove_member,
        list_members,
        set_boundary,
    ),
)
