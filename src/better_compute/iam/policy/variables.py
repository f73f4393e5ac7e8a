"""Policy variables: `${principal.id}` in a resource pattern or a condition's text stands for a value of the context.

What a variable stands for is always literal text: a `*` that comes out of the context is a star, never a wildcard, so
nobody widens a policy by choosing a name. A variable whose key is absent, or holds a list, an object or null, resolves
to nothing, and whatever contains it then matches nothing.

A template is the text split at its variables: literal, name, literal, name, ..., literal.
"""

import re
from typing import Final, TypeAlias

from better_compute.iam.policy.values import Context, scalar_text
from better_compute.iam.policy.work import Work

Template: TypeAlias = tuple[str, ...]
"""Literal texts at even places, names of variables at odd ones."""

OPENING: Final = "${"
"""What starts a variable; a text without it has none."""

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.:-]{0,127})\}")


def parse_template(text: str) -> Template:
    """The text split at its variables."""
    return tuple(_VARIABLE.split(text))


def is_well_formed(text: str) -> bool:
    """Whether every `${` starts a variable with a proper name."""
    return all(OPENING not in literal for literal in parse_template(text)[::2])


def variable_names(text: str) -> list[str]:
    """The context keys that the text's variables stand for."""
    return _VARIABLE.findall(text)


def resolve(template: Template, context: Context, work: Work) -> str | None:
    """The text with every variable replaced, None when one of them resolves to nothing."""
    parts = list(template)
    for place in range(1, len(parts), 2):
        value = scalar_text(context.get(parts[place]))
        if value is None:
            return None
        parts[place] = value
    text = "".join(parts)
    work.spend(len(text))
    return text
