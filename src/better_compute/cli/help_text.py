"""The overview that `better-compute --help` prints, made from the registry and checked in as `help.txt`."""

from collections.abc import Mapping


def root_help(groups: Mapping[str, list[str]], processes: Mapping[str, str]) -> str:
    """The text: processes first, then every group with its verbs."""
    width = max(len(name) for name in (*groups, *processes)) + 2
    lines = [
        "Better Compute: one reviewed document becomes a running fleet.",
        "",
        "Usage: better-compute COMMAND [ARGUMENTS]   (help of one command: better-compute COMMAND --help)",
        "",
        "Processes and sessions",
        *(f"  {name.ljust(width)}{described}" for name, described in processes.items()),
        "",
        "Calls, by group",
        *(_group_line(name, verbs, width) for name, verbs in groups.items()),
        "",
        "Set BETTER_COMPUTE_URL and BETTER_COMPUTE_TOKEN to call a running platform. Every command takes --json.",
        "Exit status: 0 done, 1 refused (CODE: message on standard error), 2 wrong usage, 130 interrupted.",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _group_line(name: str, verbs: list[str], width: int) -> str:
    first = dict.fromkeys(verb.split(" ")[0] for verb in verbs)
    return f"  {name.ljust(width)}{' '.join(first)}"
