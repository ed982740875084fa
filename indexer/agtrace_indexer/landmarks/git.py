"""What git and the programs of forges were asked to do, and what their output says that they did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from agtrace_schema.landmarks import Landmark, LandmarkKind, Verdict
from agtrace_schema.patterns import later

from agtrace_indexer.events.clues import FORGES, is_hash
from agtrace_indexer.landmarks.wrappers import behind_options

Told = tuple[LandmarkKind, str, str | None, str | None]
"""Kind, how, name and detail of an attempt."""

PUSH = "push"
QUIET = "commit -q"
"""A commit that only says what went wrong."""

_BEFORE_SUBCOMMAND = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")
_MERGING = ("merge", "pull")
_COMMITTING = ("commit", "cherry-pick", "revert", "rebase", "am", *_MERGING)
_NEVER = frozenset({"--dry-run", "--help", "-h", "--abort", "--quit", "--skip", "--no-commit"})
_NEW_BRANCH = {
    "checkout": ("-b", "-B", "--orphan"),
    "switch": ("-c", "-C", "--create", "--orphan"),
    "worktree": ("-b", "-B"),
}
_ACTING = frozenset({*_COMMITTING, PUSH, *_NEW_BRANCH, "branch"})
_BRANCH_OPTIONS = frozenset({"-f", "--force", "-t", "--track", "--no-track", "-q", "--quiet"})

_MADE = later(r"^(?:\[[^\[\]\n]{1,250} |ok (?=[0-9a-f]+$))([0-9a-f]{7,40})(?:\] ?|$)([^\n]*)", re.MULTILINE)
"""`[main 3fa9c21] Subject`, `[main (root-commit) 3fa9c21] ...`, `[detached HEAD 3fa9c21] ...`; rtk's `ok 3fa9c21`."""
_MERGED = later(r"^Merge made by ", re.MULTILINE)
_CHANGED = later(r"^ (?:create|delete) mode \d{6} ", re.MULTILINE)
_REFUSED = later(r"^(?:nothing (?:added )?to commit|FAILED: git|(?:error|fatal): )|Aborting commit", re.MULTILINE)
_QUIET = later(r"-[a-z]*q[a-z]*|--quiet")
QUOTING = later(r"""["`$\\]""")
_PUSHED = later(r"^ [ +*] ?[^\S\n]*[0-9a-f]{7,40}\.{2,3}([0-9a-f]{7,40})\s+\S+\s+->", re.MULTILINE)
_MOVED = later(
    r"^ (?P<how>[ +*]) (?:(?P<commits>[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40})|\[new branch\])"
    r"[^\S\n]+(?P<from>\S+)[^\S\n]+->[^\S\n]+(?P<to>\S+)",
    re.MULTILINE,
)
"""What a push brought: `   1a2b3c4..5d6e7f8  main -> main`, ` * [new branch]      mend -> mend`. What a fetch prints is
the same, behind `From` and with the name of a remote."""
_SENT = later(r"^To \S", re.MULTILINE)
_LISTED = later(r"^(?:commit )?([0-9a-f]{7,40})(?: \([^)\n]*\))?(?: ([^\n]*))?$", re.MULTILINE)
_SWITCHED = later(r"(?:Switched to a new branch|\(new branch) '([^'\n]+)'")
_TAGGED = later(r"^ \* \[new tag\]\s+(\S+)\s+->", re.MULTILINE)
_REF = later(r"[^\s$~^:?*\[\\`(){}]{1,250}")


def is_meant(words: Set[str]) -> bool:
    """Whether a command of these words may ask git, or the program of a forge, for any of this."""
    if "git" in words and not _ACTING.isdisjoint(words):
        return True
    return not FORGES.isdisjoint(words) and not _DONE.keys().isdisjoint(words)


def subcommand(words: tuple[str, ...]) -> str:
    """Return the subcommand of git among the words behind its name; empty if there is none."""
    return next(iter(behind_options(words, _BEFORE_SUBCOMMAND)), "")


def attempted(words: tuple[str, ...]) -> Told | None:
    """Return what git is asked to do with these words behind its name."""
    rest = behind_options(words, _BEFORE_SUBCOMMAND)
    if not rest or not _NEVER.isdisjoint(rest):
        return None
    name, options = rest[0], rest[1:]
    if name in _COMMITTING:
        how = QUIET if name == "commit" and any(map(_QUIET.fullmatch, options)) else name
        return LandmarkKind.COMMIT, how, None, _message(options) if name in ("commit", "merge") else None
    if name == PUSH:
        return LandmarkKind.PUSH, PUSH, None, None
    branch = _new_branch(name, options)
    return None if branch is None else (LandmarkKind.BRANCH, name, branch or None, None)


def commits(attempts: list[tuple[Told, bool]], output: str) -> Iterator[Landmark]:
    """Yield the commits that git made, in the order of its output.

    `attempts`: the ones that commit, each with whether it is known to have succeeded. A commit that wasn't shown has
    the hash that a push or a listing in the same output shows, if any does.
    """
    shown = list(_MADE.finditer(output))
    for found in shown:
        yield _commit(found[1], found[2].strip() or (attempts[0][0][3] if len(shown) == 1 else None))
    for (_, how, _, subject), surely in attempts if not (shown or _REFUSED.search(output)) else ():
        if how in _MERGING and _MERGED.search(output):
            yield _commit(_listed_hash(output, subject) or _alone(output), subject)
            return
        named = _listed_hash(output, subject) or (None if len(attempts) > 1 else _alone(output) or _pushed(output))
        told = surely or (subject and _listed_hash(output, subject)) or (named and named == _pushed(output))
        if how in ("commit", QUIET) and (told or (len(attempts) == 1 and _CHANGED.search(output))):
            yield _commit(named, subject)


def branches(told: Told, output: str, *, surely: bool) -> Iterator[Landmark]:
    """Yield the branch that git created."""
    _, how, name, _ = told
    found = _SWITCHED.search(output) if how != "branch" else None
    if found:
        yield Landmark(LandmarkKind.BRANCH, found[1], verdict=Verdict.CREATED)
    elif surely and name and _REF.fullmatch(name):
        yield Landmark(LandmarkKind.BRANCH, name, verdict=Verdict.CREATED)


def pushes(output: str) -> Iterator[Landmark]:
    """Yield the branches that pushes brought commits to; none that a remote had already, or refused."""
    sent = _SENT.search(output)
    for match in _MOVED.finditer(output):
        if match["from"] == match["to"] or (sent and sent.start() < match.start()):
            commits = match["commits"] or "new branch"
            yield Landmark(LandmarkKind.PUSH, match["to"], f"{commits} (forced)" if match["how"] == "+" else commits)


def tags(output: str) -> Iterator[Landmark]:
    """Yield the tags that a push brought to a remote for the first time."""
    for tag in _TAGGED.findall(output):
        yield Landmark(LandmarkKind.RELEASE, tag, "pushed tag", Verdict.CREATED)


def _commit(name: str | None, subject: str | None) -> Landmark:
    return Landmark(LandmarkKind.COMMIT, name, subject, Verdict.CREATED)


def _listed_hash(output: str, subject: str | None) -> str | None:
    """Return the hash before the subject, as `git log` prints it."""
    for found in _LISTED.finditer(output) if subject else ():
        line = QUOTING.sub("", found[2] or "")
        if line and (line == QUOTING.sub("", subject or "") or line.endswith(f") {subject}")):
            return found[1]
    return None


def _alone(output: str) -> str | None:
    """Return the hash that is alone in its line, as `git rev-parse` prints it: short ones have digits and letters."""
    bare = (match[1] for match in _LISTED.finditer(output) if not match[2])
    return next((one for one in bare if len(one) == 40 or is_hash(one)), None)


def _pushed(output: str) -> str | None:
    match = _PUSHED.search(output)
    return match and match[1]


def _message(options: tuple[str, ...]) -> str | None:
    """Return the first line of the message among the options of a commit or a merge."""
    for at, word in enumerate(options):
        if re.fullmatch(r"-[a-zA-Z]*m|--message", word) and at + 1 < len(options):
            return _line(options[at + 1])
        if word.startswith("--message="):
            return _line(word.partition("=")[2])
    return None


def _line(message: str) -> str | None:
    return message.strip().partition("\n")[0].strip() or None


def _new_branch(name: str, options: tuple[str, ...]) -> str | None:
    """Return the branch that is to be created, empty if the words don't name it; None if none is."""
    if name == "branch":
        bare = tuple(word for word in options if word not in _BRANCH_OPTIONS)
        return bare[0] if bare and len(bare) <= 2 and not any(word.startswith("-") for word in bare) else None
    if name == "worktree" and options[:1] != ("add",):
        return None
    for at, word in enumerate(options):
        if word in _NEW_BRANCH.get(name, ()) and at + 1 < len(options):
            return options[at + 1]
    return "" if name == "worktree" and "--detach" not in options else None


# -- forges ----------------------------------------------------------------------------------------
# What `gh` and `glab` were asked to do with pull requests, issues and releases, and whether it came about.

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
_NO_DEED = frozenset({"--help", "-h", "--dry-run", "--web", "-w"})
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


def asked_of_forge(words: tuple[str, ...]) -> Told | None:
    """Return what a forge's program is asked to do: kind, what is done, the number or tag if the words name it."""
    rest = behind_options(words[1:], ("-R", "--repo", "--hostname"))
    if len(rest) < 2 or rest[0] not in _SUBJECTS or rest[1] not in _DONE or not _NO_DEED.isdisjoint(rest):
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


def of_forge(told: Told, output: str, *, surely: bool) -> Iterator[Landmark]:
    """Yield the pull request, issue or release that an attempt came to; `surely`: it is known to have succeeded."""
    kind, how, name, _ = told
    if how == Verdict.CREATED:
        if found := None if _NOT_NEW.search(output) else _ADDRESS[kind].search(output):
            yield Landmark(kind, found[2], found[1], Verdict.CREATED)
        elif surely and kind is LandmarkKind.RELEASE and name and "$" not in name:
            yield Landmark(kind, name, None, Verdict.CREATED)
        return
    verdict = Verdict(how.partition(" ")[0])
    match = _SAID[verdict].search(output)
    if match or (surely and " " not in how):
        yield Landmark(kind, match[1] if match else name, None, verdict)
