"""A policy decision over 20 statements, beside cedarpy with the same policies (design, section 11).

Both engines run in this process, in interleaved rounds over the same requests, and must agree on every one of them
before anything is timed. What either can prepare is prepared: ours compiles the documents, cedarpy parses policies,
entities and the text of each context. Building our request object is part of our time, as reading its request is part
of cedarpy's. Rounds during which the machine lost over 2 % of its time to others are thrown away and run again.

    python bench/policy.py [--rounds N] [--seconds S] [--profile]
"""

import argparse
import cProfile
import itertools
import json
import platform
import pstats
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import cedarpy

from better_compute.iam.policy.document import parse_document
from better_compute.iam.policy.evaluate import PolicyRequest, compile_document, compile_set, evaluate

MAX_STEAL: Final = 0.02
BATCH: Final = 50

Statement = dict[str, Any]


def allow(actions: list[str], resource: str, **conditions: dict[str, Any]) -> Statement:
    """One allowing statement of ours."""
    return {"effect": "allow", "actions": actions, "resources": [resource]} | (
        {"conditions": conditions} if conditions else {}
    )


def deny(actions: list[str], resource: str, **conditions: dict[str, Any]) -> Statement:
    """One denying statement of ours."""
    return allow(actions, resource, **conditions) | {"effect": "deny"}


REGIONS: Final = {"resource.region": "eu-*"}
OURS: Final[list[Statement]] = [
    allow(["compute:instances:read"], "compute-instance/*"),
    allow(
        ["compute:instances:create"], "compute-pool/*", StringLike=REGIONS, NumericLessThanEquals={"request.gpus": 8}
    ),
    allow(["compute:instances:*"], "compute-instance/*", ArrayContains={"resource.relations": "admin"}),
    allow(["compute:instances:start", "compute:instances:stop"], "compute-instance/*", Bool={"principal.mfa": True}),
    deny(["compute:instances:delete"], "compute-instance/*", Bool={"principal.mfa": False}),
    allow(["compute:instances:delete"], "compute-instance/*", ArrayContains={"resource.relations": "owner"}),
    allow(["compute:pools:read"], "compute-pool/*"),
    allow(["compute:pools:share"], "compute-pool/*", ArrayContains={"resource.relations": "admin"}),
    allow(["compute:pools:*"], "compute-pool/*", ArrayContainsAll={"principal.roles": ["ops", "pools"]}),
    deny(["compute:pools:*"], "compute-pool/*", NotIpAddress={"request.sourceIp": ["10.0.0.0/8", "192.168.0.0/16"]}),
    allow(["compute:projects:read"], "compute-project/*", ArrayContains={"resource.relations": ["member", "admin"]}),
    allow(["compute:projects:manage"], "compute-project/*", ArrayContains={"resource.relations": "admin"}),
    allow(["compute:flavors:read"], "compute-flavor/*"),
    allow(["compute:flavors:*"], "compute-flavor/*", StringEquals={"principal.kind": "service"}),
    allow(["compute:images:read"], "compute-image/*", StringEquals={"resource.tenantId": ["acme", "root"]}),
    allow(["compute:images:*"], "compute-image/*", StringEquals={"resource.tenantId": "acme"}),
    allow(["compute:secrets:use"], "compute-secret/*", StringEquals={"resource.ownerId": "${principal.id}"}),
    deny(["compute:secrets:*"], "compute-secret/*", StringNotEquals={"resource.tenantId": "acme"}),
    allow(["compute:usage:read"], "*"),
    deny(["*"], "*", StringEquals={"principal.kind": "guest"}),
]

GROUPS: Final = ["instances", "pools", "projects", "flavors", "images", "secrets", "usage"]

THEIRS: Final = """
permit(principal, action == Action::"compute:instances:read", resource is Instance);
permit(principal, action == Action::"compute:instances:create", resource is Pool)
  when { resource.region like "eu-*" && context.gpus <= 8 };
permit(principal, action in Action::"compute:instances:*", resource is Instance)
  when { resource.relations.contains("admin") };
permit(principal, action in [Action::"compute:instances:start", Action::"compute:instances:stop"], resource is Instance)
  when { context.mfa };
forbid(principal, action == Action::"compute:instances:delete", resource is Instance) unless { context.mfa };
permit(principal, action == Action::"compute:instances:delete", resource is Instance)
  when { resource.relations.contains("owner") };
permit(principal, action == Action::"compute:pools:read", resource is Pool);
permit(principal, action == Action::"compute:pools:share", resource is Pool)
  when { resource.relations.contains("admin") };
permit(principal, action in Action::"compute:pools:*", resource is Pool)
  when { principal.roles.containsAll(["ops", "pools"]) };
forbid(principal, action in Action::"compute:pools:*", resource is Pool)
  unless { context.sourceIp.isInRange(ip("10.0.0.0/8")) || context.sourceIp.isInRange(ip("192.168.0.0/16")) };
permit(principal, action == Action::"compute:projects:read", resource is Project)
  when { resource.relations.containsAny(["member", "admin"]) };
permit(principal, action == Action::"compute:projects:manage", resource is Project)
  when { resource.relations.contains("admin") };
permit(principal, action == Action::"compute:flavors:read", resource is Flavor);
permit(principal, action in Action::"compute:flavors:*", resource is Flavor) when { principal.kind == "service" };
permit(principal, action == Action::"compute:images:read", resource is Image)
  when { ["acme", "root"].contains(resource.tenantId) };
permit(principal, action in Action::"compute:images:*", resource is Image) when { resource.tenantId == "acme" };
permit(principal, action == Action::"compute:secrets:use", resource is Secret)
  when { resource.ownerId == principal.name };
forbid(principal, action in Action::"compute:secrets:*", resource is Secret) when { resource.tenantId != "acme" };
permit(principal, action == Action::"compute:usage:read", resource);
forbid(principal, action, resource) when { principal.kind == "guest" };
"""

PEOPLE: Final = {
    "ada": {"kind": "user", "roles": ["ops", "pools"]},
    "bot": {"kind": "service", "roles": ["ci"]},
    "eve": {"kind": "guest", "roles": []},
}

ACTIONS: Final = {
    "Instance": ["instances:read", "instances:start", "instances:delete", "instances:resize"],
    "Pool": ["pools:read", "pools:share", "pools:manage", "instances:create"],
    "Project": ["projects:read", "projects:manage"],
    "Flavor": ["flavors:read", "flavors:manage"],
    "Image": ["images:read", "images:manage"],
    "Secret": ["secrets:use", "secrets:manage"],
    "Tenant": ["usage:read"],
}

RESOURCES: Final = [
    {"region": "eu-north", "tenantId": "acme", "ownerId": "ada", "relations": ["admin", "member", "owner"]},
    {"region": "us-east", "tenantId": "other", "ownerId": "bot", "relations": []},
]

Case = tuple[str, str, dict[str, Any], dict[str, Any]]
"""Our action, our resource, our context, their request."""


def cases() -> list[Case]:
    """Every person, in the office with MFA and outside without, doing everything to a resource of each kind."""
    found: list[Case] = []
    things = enumerate(RESOURCES)
    for (place, attributes), name, inside in itertools.product(list(things), PEOPLE, (True, False)):
        address, gpus = ("10.1.2.3", 4) if inside else ("203.0.113.9", 16)
        mine: dict[str, Any] = {f"principal.{key}": value for key, value in PEOPLE[name].items()}
        mine |= {f"resource.{key}": value for key, value in attributes.items()}
        mine |= {"principal.id": name, "principal.mfa": inside, "request.sourceIp": address, "request.gpus": gpus}
        text = json.dumps({"mfa": inside, "gpus": gpus, "sourceIp": {"__extn": {"fn": "ip", "arg": address}}})
        for kind, verbs in ACTIONS.items():
            for verb in verbs:
                theirs = {
                    "principal": f'User::"{name}"',
                    "action": f'Action::"compute:{verb}"',
                    "resource": f'{kind}::"{place}"',
                    "context": text,
                }
                found.append((f"compute:{verb}", f"compute-{kind.lower()}/{place}", mine, theirs))
    return found


def entities() -> list[dict[str, Any]]:
    """People, things and the tree of actions, as cedar wants them."""
    people = [
        {"uid": {"type": "User", "id": name}, "attrs": {"name": name} | attributes, "parents": []}
        for name, attributes in PEOPLE.items()
    ]
    things = [
        {"uid": {"type": kind, "id": str(place)}, "attrs": attributes, "parents": []}
        for kind in ACTIONS
        for place, attributes in enumerate(RESOURCES)
    ]
    groups = [{"uid": {"type": "Action", "id": f"compute:{group}:*"}, "attrs": {}, "parents": []} for group in GROUPS]
    actions = [
        {
            "uid": {"type": "Action", "id": f"compute:{verb}"},
            "attrs": {},
            "parents": [{"type": "Action", "id": f"compute:{verb.split(':')[0]}:*"}],
        }
        for verb in sorted({verb for verbs in ACTIONS.values() for verb in verbs})
    ]
    return people + things + groups + actions


def engines(requests: list[Case]) -> dict[str, Callable[[], list[bool]]]:
    """Each engine as one pass over all requests."""
    policy = compile_document(parse_document({"version": 1, "statements": OURS}))
    indexed = compile_set([policy], [])
    policies = cedarpy.PolicySet.from_str(THEIRS)
    parsed = cedarpy.Entities.from_json_str(json.dumps(entities()))
    theirs = [case[3] for case in requests]
    batches = [theirs[start : start + BATCH] for start in range(0, len(theirs), BATCH)]

    return {
        "CompiledSet.decide": lambda: [indexed.decide(PolicyRequest(a, r, c)).allowed for a, r, c, _ in requests],
        "evaluate": lambda: [evaluate([policy], [], PolicyRequest(a, r, c)).allowed for a, r, c, _ in requests],
        "cedarpy is_authorized": lambda: [cedarpy.is_authorized(each, policies, parsed).allowed for each in theirs],
        f"cedarpy is_authorized_batch, {BATCH} at once": lambda: [
            result.allowed for batch in batches for result in cedarpy.is_authorized_batch(batch, policies, parsed)
        ],
    }


def rate(run: Callable[[], list[bool]], *, seconds: float) -> float:
    """Decisions a second over at least the given time."""
    done, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        done += len(run())
    return done / spent


def cpu_ticks() -> tuple[int, int]:
    """Stolen ticks and all ticks of this machine since it started."""
    ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


def measure(runs: dict[str, Callable[[], list[bool]]], *, rounds: int, seconds: float) -> dict[str, list[float]]:
    """The rate of every engine in every round that counts."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    discarded = 0
    while len(rates[next(iter(runs))]) < rounds:
        stolen, ticks = cpu_ticks()
        this_round = {name: rate(run, seconds=seconds) for name, run in runs.items()}
        stolen_after, ticks_after = cpu_ticks()
        if discarded < rounds and stolen_after - stolen > MAX_STEAL * (ticks_after - ticks):
            discarded += 1
            continue
        for name, value in this_round.items():
            rates[name].append(value)
    print(f"{rounds} rounds of {seconds} s per engine, {discarded} discarded for steal\n")
    return rates


def main() -> None:
    """Checks agreement, measures, prints the table."""
    parser = argparse.ArgumentParser(description="a policy decision over 20 statements, beside cedarpy")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--profile", action="store_true", help="profile our engine instead")
    options = parser.parse_args()
    requests = cases()
    runs = engines(requests)
    ours = next(iter(runs))
    if options.profile:
        with cProfile.Profile() as profile:
            for _ in range(200):
                runs[ours]()
        pstats.Stats(profile).sort_stats("tottime").print_stats(15)
        return
    answers = {name: run() for name, run in runs.items()}
    assert all(each == answers[ours] for each in answers.values()), "the engines disagree"
    print(f"Python {platform.python_version()}, cedarpy {version('cedarpy')}, {platform.machine()}")
    print(f"{len(requests)} requests, {sum(answers[ours])} allowed, {len(OURS)} statements")
    rates = measure(runs, rounds=options.rounds, seconds=options.seconds)
    print("| engine | decisions a second, median | lowest to highest | microseconds each | ours is faster by |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, found in rates.items():
        ratios = [mine / other for mine, other in zip(rates[ours], found, strict=True)]
        median = statistics.median(found)
        print(
            f"| {name} | {median:,.0f} | {min(found):,.0f} to {max(found):,.0f} | {1e6 / median:.2f} "
            f"| {statistics.median(ratios):.1f} x ({min(ratios):.1f} to {max(ratios):.1f}) |"
        )


if __name__ == "__main__":
    main()
