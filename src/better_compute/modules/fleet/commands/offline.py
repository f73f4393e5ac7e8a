"""`fleet schema` and `fleet validate`: what can be said about a document without any platform.

Both know the kinds of the deployment that the working folder describes (`compute.py`, or `--config`), which is the
default one where there is none. Neither looks for a URL, a token or a database, so that they run in an editor, in a
commit hook, and in a pipeline that holds no secret.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from better_compute.base.errors import ComputeError
from better_compute.base.items import ItemKind
from better_compute.cli.command import Command, Context
from better_compute.cli.problems import EXIT_OK
from better_compute.modules.fleet.commands.asking import FileArgument
from better_compute.modules.fleet.commands.reading import read_source
from better_compute.modules.fleet.rules.blocks import words
from better_compute.modules.fleet.rules.document import Document, read_document
from better_compute.modules.fleet.rules.json_schema import document_schema
from better_compute.modules.fleet.rules.order import ordered_kinds


async def schema_command(context: Context) -> int:
    """Prints the JSON Schema of FleetConfig documents, for editors."""
    context.output.text(json.dumps(document_schema(_kinds(context)), indent=2, ensure_ascii=False))
    return EXIT_OK


async def validate_command(context: Context, file: FileArgument) -> int:
    """Checks a document as far as that goes without a platform, and tells every problem with its line.

    What it refers to outside itself (tenants, objects that are there already) is checked by `fleet plan`.
    """
    source = read_source(file)
    try:
        document = read_document(_kinds(context), source.document)
    except ComputeError as error:
        raise source.located(error) from error
    counts = {kind: len(items) for kind, items in document.wanted.items() if items}
    if context.output.as_json:
        context.output.answer({"valid": True, "items": counts, "absent": sorted(_absent(document))})
        return EXIT_OK
    held = ", ".join(f"{count} {words(kind)}{'' if count == 1 else 's'}" for kind, count in counts.items())
    context.output.text(f"{source.name} is a FleetConfig with {held or 'no items'}.")
    for kind, reason in sorted(_absent(document).items()):
        context.output.note(f"Its {words(kind)}s will plan as blocked: {reason}.")
    return EXIT_OK


def _kinds(context: Context) -> Sequence[ItemKind[Any]]:
    return ordered_kinds([kind.items for kind in context.registry.kinds.values()])


def _absent(document: Document) -> Mapping[str, str]:
    return {item.kind: item.reason for item in document.absent}


COMMANDS: Final = (
    Command("fleet schema", schema_command, without_caller=True),
    Command("fleet validate", validate_command, without_caller=True),
)
