"""Shell programs that only read, lint, test, wait, or ask for a state.

A program that isn't listed here is taken for one that changes something.
"""

from __future__ import annotations

import re

from agtrace_indexer.events.shell import Part
from agtrace_schema.patterns import later

_READERS = frozenset(
    """
    [ [[ ack ag awk base64 basename bat batcat cat cd cksum cmp colordiff column comm cut date df diff difft dig dir
    dirname du echo egrep exa expand expr eza false fd fdfind fgrep file find findstr fold free fzf gawk getconf grep
    gzcat hash head hexdump host hostname id jobs join jq less locale locate ls lsblk lscpu lsof man mawk md5 md5sum
    more mdfind netstat nl nproc nslookup od paste pgrep pidof ping popd printenv printf ps pushd pwd read readlink
    realpath rev rg ripgrep sed seq set sha1sum sha256sum shasum sort ss stat strings sw_vers tac tail test tr tree
    true type ugrep uname uniq unset uptime wc whence where whereis which who whoami xxd yq zcat zgrep zipinfo export
    get-childitem get-command get-content get-item get-location get-process gc gci measure-object out-string
    select-object select-string sls test-path where-object write-host write-output format-table format-list
    """.split()  # noqa: SIM905
)
_CHANGING_WORDS = {
    "awk": later(r"system\(|print[^;}]*>|^-i\b"),
    "gawk": later(r"system\(|print[^;}]*>|^-i\b"),
    "mawk": later(r"system\(|print[^;}]*>"),
    "date": later(r"(?:-s|--set)\b"),
    "fd": later(r"(?:-x|-X|--exec(?:-batch)?)\b"),
    "fdfind": later(r"(?:-x|-X|--exec(?:-batch)?)\b"),
    "find": later(r"-(?:delete|exec|execdir|ok|okdir|fprint\w*|fls)$"),
    "hostname": later(r"[a-z0-9]"),
    "sed": later(r"-[a-zA-Z]*i|--in-place"),
    "sort": later(r"-[a-zA-Z]*o|--output"),
    "tree": later(r"-o$"),
    "yq": later(r"-[a-zA-Z]*i|--in-?place"),
}
"""Words that make an otherwise reading program change something, matched from their beginning (awk's: anywhere)."""

_SUBCOMMANDS: dict[str, dict[str, re.Pattern[str] | None]] = {
    "git": {
        **dict.fromkeys(
            """
            annotate blame cat-file check-attr check-ignore check-ref-format cherry count-objects describe diff
            diff-files diff-index diff-tree for-each-ref fsck grep help log ls-files ls-remote ls-tree merge-base
            name-rev range-diff rev-list rev-parse shortlog show show-branch show-ref status var version
            verify-commit whatchanged
            """.split()  # noqa: SIM905
        ),
        "branch": later(r"(?:-[avlr]+|--(?:list|all|remotes|show-current|contains|merged|no-merged|format|sort).*)"),
        "config": later(r"(?:-l|--list|--get.*)"),
        "notes": later(r"(?:list|show)"),
        "reflog": later(r"(?:show|-.*)"),
        "remote": later(r"(?:-v|--verbose|show|get-url)"),
        "stash": later(r"(?:list|show)"),
        "submodule": later(r"(?:status|summary)"),
        "tag": later(r"(?:-l|--list|-n\d*|--contains|--points-at|--sort.*)"),
        "worktree": later(r"list"),
    },
    "brew": dict.fromkeys(("info", "list", "search")),
    "cargo": dict.fromkeys(("tree", "metadata", "search", "version")),
    "docker": dict.fromkeys(("images", "info", "inspect", "logs", "port", "search", "top", "version")),
    "go": dict.fromkeys(("doc", "env", "list", "version")),
    "kubectl": dict.fromkeys(("describe", "explain", "logs", "api-resources", "version")),
    "npm": dict.fromkeys(("ls", "list", "view", "info", "search", "outdated", "why", "explain", "root")),
    "pip": dict.fromkeys(("freeze", "list", "show", "check")),
    "pip3": dict.fromkeys(("freeze", "list", "show", "check")),
    "pnpm": dict.fromkeys(("ls", "list", "view", "why", "outdated")),
    "terraform": dict.fromkeys(("output", "show", "version", "providers")),
    "uv": {"pip": later(r"(?:list|show|freeze)"), "tree": None},
    "yarn": dict.fromkeys(("info", "list", "why")),
}
"""Subcommands that only read; one with a pattern only if its first word matches, or if no word follows."""

_TAKES_VALUE = {
    "git": ("-C", "-c", "--git-dir", "--work-tree"),
    "docker": ("-H", "--context"),
    "kubectl": ("-n", "--namespace", "--context"),
}
_GH_READING = frozenset({"view", "list", "status", "diff", "checks", "ls", "search"})
_DATABASES = frozenset({"sqlite3", "psql", "mysql", "mariadb", "duckdb"})
_QUERY = later(r"\s*(?:select|explain|describe|show|with|\.(?:schema|tables|indexes)|\\d)", re.I)
_STATEMENT = later(r"\b(?:insert|update|delete|replace|create|drop|alter|truncate|attach|import|vacuum)\b", re.I)
_TOLD = frozenset({"--version", "--help", "-h", "-V"})

_TESTERS = frozenset(
    """
    [ [[ ack ag cmp colordiff diff egrep fgrep findstr grep hash lsof pgrep pidof rg ripgrep test type ugrep whence
    where which zgrep
    """.split()  # noqa: SIM905
)
_GH_TESTS = frozenset({("pr", "view"), ("pr", "checks")})
_GIT_TESTS = frozenset({"grep", "check-ignore", "check-ref-format"})

LINTER = later(r"\b(?:lint|eslint|biome|ruff|flake8|pylint|mypy|pyright|clippy|golangci-lint|stylelint|typecheck)\b")
"""The names of linters and type checkers, anywhere in a command."""

_MENDS = later(r"fix|--write\b|--apply\b|\bformat\b")
_NAMING_WORDS = 3
"""The words of `npm run lint` that name what runs."""

_WAITERS = frozenset({"sleep", "start-sleep", "wait", "wait-process", "watch", "inotifywait", "fswatch"})
_FOLLOWERS = frozenset({"tail", "journalctl", "stern"})
_WATCHING = frozenset({"--watch", "--watch=true", "--watchall", "--watch-all"})

_STATES: dict[str, re.Pattern[str]] = {
    "argocd": later(r"app (?:get|list|wait)\b"),
    "aws": later(r"\S+ (?:describe-|get-|list-|wait\b)"),
    "az": later(r"(?:\S+ )+(?:show|list|wait)\b"),
    "docker": later(r"(?:ps|stats|inspect|logs|container ls|service ps|compose (?:ps|logs|top|ls))\b"),
    "docker-compose": later(r"(?:ps|logs|top)\b"),
    "flyctl": later(r"(?:status|logs)\b"),
    "fly": later(r"(?:status|logs)\b"),
    "gcloud": later(r"(?:\S+ )+(?:describe|list|log)\b"),
    "gh": later(r"run(?! (?:rerun|cancel|delete|download)\b)|pr (?:checks|status|view)\b|workflow view\b"),
    "glab": later(r"(?:ci|pipeline) (?:status|view|list|get|trace)\b"),
    "helm": later(r"(?:status|list|history)\b"),
    "heroku": later(r"(?:ps|logs|releases)\b"),
    "initctl": later(r"status\b"),
    "kubectl": later(r"(?:get|wait|top|logs|rollout status)\b"),
    "oc": later(r"(?:get|wait|logs|rollout status|status)\b"),
    "nc": later(r"-\w*z"),
    "podman": later(r"(?:ps|stats|inspect|logs)\b"),
    "pm2": later(r"(?:status|list|ls|show|logs)\b"),
    "redis-cli": later(r"(?:.* )?ping$", re.I),
    "service": later(r"\S+ status\b|--status-all"),
    "supervisorctl": later(r"status\b"),
    "systemctl": later(r"(?:.* )?(?:status|is-active|is-failed|show|list-units)\b"),
    "vercel": later(r"(?:inspect|logs|ls|list)\b"),
}
"""Programs that ask for a state, with the words for it."""
_STATE_PROGRAMS = frozenset(
    """
    bjobs nvidia-smi mysqladmin pg_isready pgrep pidof ping ps qstat sacct squeue jobs lsof netstat ss uptime
    """.split()  # noqa: SIM905
)
_HEALTH = later(
    r"(?:^|[/_.-])(?:health\w*|ready|readyz|readiness|live|livez|liveness|alive|heartbeat|ping|status|up)(?:$|[/?#.&])",
    re.I,
)
_SENDING = later(r"-[a-zA-Z]*[dFTX]$|-X\S+|--(?:data|form|json|upload|request|post)\b.*")


def reads(part: Part) -> bool:
    """Whether a program can't change anything."""
    if part.writes or part.expands:
        return False
    if not part.words:
        return True
    name, words = part.program, part.words[1:]
    if name in _READERS:
        changing = _CHANGING_WORDS.get(name)
        within = changing is not None and "awk" in name
        return changing is None or not any((changing.search if within else changing.match)(word) for word in words)
    if words and _TOLD.issuperset(words):
        return True
    if name in _DATABASES:
        return any(map(_QUERY.match, words)) and not any(map(_STATEMENT.search, words))
    if name == "gh":
        return bool(_GH_READING.intersection(words[:2]))
    if name == "command":
        return True  # with options; without them the parser skips it
    return _subcommand_reads(name, _behind_options(name, words))


def tests(part: Part) -> bool:
    """Whether exit code 1 of a program is an answer: no match, a difference, not found."""
    name, words = part.program, part.words[1:]
    if name == "git":
        words = _behind_options(name, words)
        return bool(words) and (words[0] in _GIT_TESTS or _git_tests(words[0], words[1:]))
    if name == "command":
        return words[:1] in (("-v",), ("-V",))
    if name == "systemctl":
        return bool(words) and words[0].startswith("is-")
    if name == "npm":
        return words[:1] == ("outdated",)
    if name == "gh":
        return words[:2] in _GH_TESTS and all(word.startswith("-") for word in words[2:3])  # of what is checked out
    if name == "jq":
        return not {"-e", "--exit-status"}.isdisjoint(words)
    return name in _TESTERS


def lints(part: Part) -> bool:
    """Whether a linter or type checker reports, and mends nothing."""
    words = part.words[:_NAMING_WORDS]
    return any(map(LINTER.search, words)) and not any(map(_MENDS.search, part.words))


def waits(part: Part) -> bool:
    """Whether a program waits for time to pass, or for something to change."""
    name, words = part.program, part.words[1:]
    if name in _WAITERS or any(word.lower() in _WATCHING for word in words):
        return True
    return name in _FOLLOWERS and any(re.fullmatch(r"-[a-zA-Z]*[fF]|--follow", word) for word in words)


def asks_for_state(part: Part) -> bool:
    """Whether a program asks for the state of something that changes by itself: a build, a service, a process."""
    name, words = part.program, part.words[1:]
    if part.writes or not name:
        return False
    if name in _STATE_PROGRAMS:
        return True
    if name in ("curl", "wget", "http", "invoke-webrequest", "invoke-restmethod"):
        return any(map(_HEALTH.search, words)) and not any(map(_SENDING.fullmatch, words))
    state = _STATES.get(name)
    return state is not None and state.match(" ".join(_behind_options(name, words))) is not None


def _subcommand_reads(name: str, words: tuple[str, ...]) -> bool:
    known = _SUBCOMMANDS.get(name)
    if known is None or not words or words[0] not in known:
        return False
    if words[0].startswith("diff") and any(word.startswith("--output") for word in words):
        return False
    pattern = known[words[0]]
    return pattern is None or (len(words) == 1 and words[0] != "stash") or any(map(pattern.fullmatch, words[1:2]))


def _git_tests(subcommand: str, words: tuple[str, ...]) -> bool:
    if subcommand.startswith("diff"):
        return not {"--exit-code", "--quiet", "--no-index", "--check"}.isdisjoint(words)
    if subcommand == "merge-base":
        return "--is-ancestor" in words
    if subcommand == "config":
        return any(word.startswith("--get") for word in words)
    return subcommand in ("rev-parse", "show-ref") and not {"--verify", "--exists"}.isdisjoint(words)


def _behind_options(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words from the subcommand on."""
    takes, at = _TAKES_VALUE.get(name, ()), 0
    while at < len(words) and words[at].startswith("-") and name in ("git", "docker", "kubectl", "gh", "npm", "oc"):
        at += 2 if words[at] in takes else 1
    return words[at:]
