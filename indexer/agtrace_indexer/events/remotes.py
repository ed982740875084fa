"""The addresses of repositories: `github.com/owner/name`, whichever way git and its forges write them."""

from __future__ import annotations

from functools import lru_cache

from agtrace_schema.patterns import later

from agtrace_indexer.events.strings import masked

_LONGEST = 300
_ADDRESS = later(
    r"(?:(?:https?|ssh|git)://(?:[^\s/@]*@)?|(?:[\w.-]+@)?(?=[\w.-]+:[^/\d]))"
    r"(?P<host>[A-Za-z0-9](?:[\w-]*\.)+[A-Za-z]{2,24})(?::\d{1,5}(?=/))?[/:]"
    r"(?P<path>[\w.~-]+(?:/[\w.~-]+){1,4})/?"
)
_PAGE = later(r"/(?:-/)?(?:pull|pulls|merge_requests|issues|actions|releases|commit|compare|tree|blob)(?:/|$).*")


@lru_cache(maxsize=1_024)
def repository_at(address: str) -> str | None:
    """Return the repository at an address, or that of a page of a forge, in lower case and without its secrets.

    None for anything else: a path of this machine says nothing about which repository it is.
    """
    match = _ADDRESS.match(address[:_LONGEST].strip())
    if match is None:
        return None
    path = _PAGE.sub("", match["path"]).removesuffix(".git")
    if "/" not in path or any(part in ("", ".", "..") for part in path.split("/")):
        return None
    told = f"{match['host']}/{path}".lower()
    return told if masked(told) == told else None


def name_of(repository: str) -> str:
    """Return the name of a repository, without its host and owner."""
    return repository.rpartition("/")[2]


def owner_of(repository: str) -> str:
    """Return who owns a repository, without its host; the innermost group if there are several."""
    return repository.split("/")[-2]


def without_host(repository: str) -> str:
    """Return `owner/name`."""
    return repository.partition("/")[2]
