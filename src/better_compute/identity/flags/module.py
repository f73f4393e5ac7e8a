"""The manifest of feature flags."""

from pathlib import Path

from better_compute.identity.flags.methods import (
    create_flag,
    delete_flag,
    evaluate_flags,
    get_flag,
    list_flags,
    set_override,
    set_target,
    update_flag,
)
from better_compute.kernel.module import Module

MODULE = Module(
    name="flags",
    package=Path(__file__).parent,
    requires=("iam", "tenants"),
    methods=(
        create_flag,
        get_flag,
        list_flags,
        update_flag,
        delete_flag,
        set_target,
        set_override,
        evaluate_flags,
    ),
)
