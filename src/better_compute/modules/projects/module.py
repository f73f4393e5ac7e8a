"""The manifest of `projects`."""

from pathlib import Path
from typing import Final

from better_compute.kernel.module import Module
from better_compute.modules.projects.methods import (
    PROJECT_TYPE,
    archive_project,
    create_project,
    get_project,
    list_projects,
)
from better_compute.modules.projects.schema import EVENTS

MODULE: Final = Module(
    name="projects",
    package=Path(__file__).parent,
    methods=(create_project, get_project, list_projects, archive_project),
    resource_types=(PROJECT_TYPE,),
    events=EVENTS,
)
