"""Landmarks: what a session did, as facts that hang on the event that did it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class LandmarkKind(StrEnum):
    """The kinds of landmarks."""

    COMMIT = "commit"
    BRANCH = "branch"
    PUSH = "push"
    PULL_REQUEST = "pull_request"
    ISSUE = "issue"
    TEST_RUN = "test_run"
    BUILD = "build"
    RELEASE = "release"
    QUESTION = "question"
    COMPACTION = "compaction"


class Verdict(StrEnum):
    """How a landmark ended, or what was done to it."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Of a test run or a build: neither an exit code nor the output tells."""
    CREATED = "created"
    MERGED = "merged"
    CLOSED = "closed"
    REOPENED = "reopened"
    LINKED = "linked"
    """Of a pull request: the agent says that the session is about it."""
    ANSWERED = "answered"
    UNANSWERED = "unanswered"


class Evidence(StrEnum):
    """What tells of a landmark."""

    RECORD = "record"
    """A field that the agent wrote for this purpose."""
    EXIT_CODE = "exit_code"
    """The exit code of the command."""
    OUTPUT = "output"
    """What the command printed: its exit code is hidden, by a pipe for example, or says nothing of it."""


class Landmark(NamedTuple):
    """A landmark, without the event that it belongs to."""

    kind: LandmarkKind
    name: str | None
    """The hash of a commit, the number of a pull request or issue, the branch that was created or pushed to, the
    program of a test run or build, what was released, or what was asked; None where nothing tells."""
    detail: str | None = None
    """The subject of a commit, the commits that a push brought (`1a2b3c4..5d6e7f8`, `new branch`), the address of a
    pull request, the counts of a test run, the answer to a question."""
    verdict: Verdict | None = None
    evidence: Evidence = Evidence.OUTPUT
    """For a test run or build: what decided its verdict."""
