"""The manifest of relationship tuples."""

from pathlib import Path

from better_compute.identity.relations.methods import create_relationship, delete_relationship, list_relationships
from better_compute.kernel.module import Module

MODULE = Module(
    name="relations",
    package=Path(__file__).parent,
    requires=("iam", "people"),
    methods=(create_relationship, list_relationships, delete_relationship),
)
