"""Finds the description of the deployment: `--config module:attribute`, else `compute.py` in the working folder.

Where there is neither, the default deployment is used: every module, the embedded IAM. A file that cannot be imported,
or that describes something else, is INVALID_CONFIG with what to write instead.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from better_compute.app import BetterCompute
from better_compute.base.errors import ComputeError, ErrorCode
from better_compute.builtin import default

CONFIG_FILE: Final = "compute.py"
ATTRIBUTE: Final = "compute"


def find_config(named: str | None = None, *, folder: Path | None = None) -> BetterCompute:
    """The described deployment; INVALID_CONFIG when it cannot be had."""
    if named is not None:
        module_name, _, attribute = named.partition(":")
        return _described(_import_named(module_name, folder or Path.cwd()), attribute or ATTRIBUTE)
    file = (folder or Path.cwd()) / CONFIG_FILE
    if not file.exists():
        return default()
    return _described(_import_file(file), ATTRIBUTE)


def _import_named(name: str, folder: Path) -> ModuleType:
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _misconfigured(f"{name} cannot be imported: {error}") from error
    finally:
        sys.path.remove(str(folder))


def _import_file(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("better_compute_config", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ComputeError:
        raise
    except Exception as error:
        raise _misconfigured(f"{file} cannot be run: {type(error).__name__}: {error}") from error
    return module


def _described(module: ModuleType, attribute: str) -> BetterCompute:
    found: object = getattr(module, attribute, None)
    if not isinstance(found, BetterCompute):
        raise _misconfigured(
            f"{module.__name__} has no `{attribute}` made by better_compute(...); "
            f"write `{attribute} = better_compute(modules=[vps(), fleet_module()], iam=embedded())`"
        )
    return found


def _misconfigured(message: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_CONFIG, f"{message}.")
