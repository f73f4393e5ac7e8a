"""What an id tells of its owner."""

from better_compute.base.ids import is_id
from better_compute.identity.people.schema import SubjectType


def subject_type_of(subject_id: str) -> SubjectType:
    """Whether a role or a relation is given to a group or to an identity, told by the id alone."""
    return "group" if is_id("grp", subject_id) else "identity"
