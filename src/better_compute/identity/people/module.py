"""The manifest of people and groups."""

from pathlib import Path

from better_compute.identity.people.methods import create_person, get_person, list_people, set_person_status
from better_compute.kernel.module import Module

MODULE = Module(
    name="people",
    package=Path(__file__).parent,
    requires=("iam",),
    methods=(create_person, get_person, list_people, set_person_status),
)
