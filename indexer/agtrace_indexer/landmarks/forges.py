"""What `gh` and `glab` were asked to do with pull requests, issues and releases, and whether it came about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from agtrace_schema.landmarks import Landmark, LandmarkKind, Verdict
from agtrace_schema.patterns import later

from agtrace_indexer.events.clues import FORGES
from agtrace_indexer.landmarks.wrappers import behind_options

Told = tuple[LandmarkKind, str, str | None, str | None]


_SUBJECTS = {
    "pr": LandmarkKind.PULL_REQUEST,
    "mr": LandmarkKind.PULL_REQUEST,
    "issue": LandmarkKind.ISSUE,
    "release": LandmarkKind.RELEASE,
}
_DONE = {
    "create": Verdict.CREATED,
    "new": Verdict.CREATED,
    "merge": Verdict.MERGED,
    "accept": Verdict.MERGED,
    "close": Verdict.CLOSED,
    "reopen": Verdict.REOPENED,
}
_NEVER = frozenset({"--help", "-h", "--dry-run", "--web", "-w"})
_TAKES_VALUE = tuple(
    """
    -R --repo --hostname -c --comment -r --reason -b --body -t --subject --title -F --body-file --match-head-commit
    -A --author-email -n --notes
    """.split()  # noqa: SIM905
)

_ADDRESS = {
    LandmarkKind.PULL_REQUEST: later(r"^[^\S\n]*(https?://[^\s/]+/\S+?/(?:pull|merge_requests)/(\d+))\s*$", re.M),
    LandmarkKind.ISSUE: later(r"^[^\S\n]*(https?://[^\s/]+/\S+?/issues/(\d+))\s*$", re.M),
    LandmarkKind.RELEASE: later(r"^[^\S\n]*(https?://[^\s/]+/\S+?/releases/(?:tag/)?([^\s/]+))\s*$", re.M),
}
_NUMBERED = later(r"(?:.*/(?:pull|merge_requests|issues)/|#)?(\d+)(?:[/#?].*)?")
_SAID = {
    Verdict.MERGED: later(r"^[^\w\n]*(?:(?:Squashed|Rebased) and m|M)erged(?: pull request)?\W[^\n#]*#(\d+)", re.M),
    Verdict.CLOSED: later(r"^[^\w\n]*Closed (?:pull request|issue)\W[^\n#]*#(\d+)", re.M),
    Verdict.REOPENED: later(r"^[^\w\n]*Reopened (?:pull request|issue)\W[^\n#]*#(\d+)", re.M),
}
_NOT_NEW = later(r"already exists")


def is_meant(words: Set[str]) -> bool:
    """Whether a command of these words may ask a forge for any of this."""
    return not FORGES.isdisjoint(words) and not _DONE.keys().isdisjoint(words)


def attempted(words: tuple[str, ...]) -> Told | None:
    """Return what a forge's program is asked to do: kind, what is done, the number or tag if the words name it."""
    rest = behind_options(words[1:], ("-R", "--repo", "--hostname"))
    if len(rest) < 2 or rest[0] not in _SUBJECTS or rest[1] not in _DONE or not _NEVER.isdisjoint(rest):
        return None
    kind, done = _SUBJECTS[rest[0]], _DONE[rest[1]]
    if (kind is LandmarkKind.RELEASE) != (done is Verdict.CREATED) and kind is LandmarkKind.RELEASE:
        return None
    named = next(iter(behind_options(rest[2:], _TAKES_VALUE)), None)
    if kind is not LandmarkKind.RELEASE:
        number = named and _NUMBERED.fullmatch(named)
        named = number[1] if number and done is not Verdict.CREATED else None
    how = f"{done} later" if "--auto" in rest else str(done)
    return kind, how, named, None


def landmarks(told: Told, output: str, *, surely: bool) -> Iterator[Landmark]:
    """Yield the pull request, issue or release that an attempt came to; `surely`: it is known to have succeeded."""
    kind, how, name, _ = told
    if how == Verdict.CREATED:
        if found := None if _NOT_NEW.search(output) else _ADDRESS[kind].search(output):
            yield Landmark(kind, found[2], found[1], Verdict.CREATED)
        elif surely and kind is LandmarkKind.RELEASE and name and "$" not in name:
            yield Landmark(kind, name, None, Verdict.CREATED)
        return
    verdict = Verdict(how.partition(" ")[0])
    said = _SAID[verdict].search(output)
    if said or (surely and " " not in how):
        yield Landmark(kind, said[1] if said else name, None, verdict)
