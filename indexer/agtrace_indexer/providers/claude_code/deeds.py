"""What Claude Code itself says that a command did: commits and pull requests, in fields beside the result."""

from __future__ import annotations

from typing import Any

from agtrace_schema.landmarks import Evidence, Landmark, LandmarkKind, Verdict

from agtrace_indexer.events.drafts import LogState, Record
from agtrace_indexer.events.json_values import count, fields, text

_DONE = {
    "created": Verdict.CREATED,
    "merged": Verdict.MERGED,
    "closed": Verdict.CLOSED,
    "reopened": Verdict.REOPENED,
}
_LINKS_REMEMBERED = 32
_LONGEST = 200


def deeds(detail: Any) -> tuple[Landmark, ...]:
    """Read `gitOperation` in the structure of a result: `{commit: {sha, kind}, pr: {number, url, action}}`."""
    operation = fields(detail).get("gitOperation")
    if not isinstance(operation, dict):
        return ()
    found = []
    if sha := text(fields(operation.get("commit")).get("sha")):
        found.append(Landmark(LandmarkKind.COMMIT, sha[:40], None, Verdict.CREATED, Evidence.RECORD))
    request = fields(operation.get("pr"))
    if verdict := _DONE.get(request.get("action") or ""):
        found.append(_pull_request(request.get("number"), request.get("url"), verdict))
    return tuple(found)


def link(record: Record, state: LogState) -> tuple[Landmark, ...]:
    """Read a `pr-link`, which Claude Code writes again and again: the pull request that a session is about."""
    address = text(record.get("prUrl"))
    known = state.memory.setdefault("links", [])
    if address is None or address in known:
        return ()
    state.memory["links"] = [*known, address][-_LINKS_REMEMBERED:]
    return (_pull_request(record.get("prNumber"), address, Verdict.LINKED),)


def _pull_request(number: Any, address: Any, verdict: Verdict) -> Landmark:
    name, url = count(number), text(address)
    shown = None if name is None else str(name)
    return Landmark(LandmarkKind.PULL_REQUEST, shown, url and url[:_LONGEST], verdict, Evidence.RECORD)
