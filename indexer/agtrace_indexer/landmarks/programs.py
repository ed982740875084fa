"""Programs that test, build and publish, by their words: `go test`, `npm run build`, `cargo publish`."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from agtrace_schema.landmarks import LandmarkKind
from agtrace_schema.patterns import later

from agtrace_indexer.landmarks.wrappers import behind_options

_TEST, _BUILD, _RELEASE = LandmarkKind.TEST_RUN, LandmarkKind.BUILD, LandmarkKind.RELEASE


class Task(NamedTuple):
    """What a program is run for."""

    kind: LandmarkKind
    name: str
    """What it is called in a landmark: `npm run build`."""


_ALONE = {
    **dict.fromkeys(
        """
        ava bats behave busted ctest ginkgo gotestsum jasmine jest mocha nose2 nosetests nox pest phpunit prove
        py.test pytest rspec tox trial unittest vitest
        """.split(),  # noqa: SIM905
        _TEST,
    ),
    **dict.fromkeys(
        """
        c++ cc clang clang++ electron-builder esbuild g++ gcc javac msbuild ninja parcel pyinstaller rollup rustc tsc
        tsup vue-tsc webpack
        """.split(),  # noqa: SIM905
        _BUILD,
    ),
}
"""Programs that need no further word."""

_TESTING = dict.fromkeys(("test",), _TEST)
_BUILDING = dict.fromkeys(("build",), _BUILD)
_PUBLISHING = dict.fromkeys(("publish",), _RELEASE)
_BOTH = _TESTING | _BUILDING

_SUBCOMMANDS: dict[str, dict[str, LandmarkKind]] = {
    "astro": _BUILDING,
    "bazel": _BOTH,
    "bazelisk": _BOTH,
    "bun": _BOTH | _PUBLISHING,
    "cabal": _BOTH,
    "cargo": {
        "test": _TEST,
        "t": _TEST,
        "nextest": _TEST,
        "build": _BUILD,
        "b": _BUILD,
        "check": _BUILD,
        **_PUBLISHING,
    },
    "cypress": {"run": _TEST},
    "dart": _TESTING,
    "deno": _TESTING,
    "docker": {**_BUILDING, "buildx build": _BUILD, "compose build": _BUILD, "image build": _BUILD},
    "docker-compose": _BUILDING,
    "dotnet": _BOTH | {"vstest": _TEST, "publish": _BUILD, "pack": _BUILD},
    "flit": _BUILDING | _PUBLISHING,
    "flutter": _BOTH,
    "forge": _BOTH,
    "gem": {"build": _BUILD, "push": _RELEASE},
    "go": {"test": _TEST, "build": _BUILD, "install": _BUILD},
    "hatch": _BOTH | _PUBLISHING,
    "jekyll": _BUILDING,
    "maturin": {"build": _BUILD, "develop": _BUILD, **_PUBLISHING},
    "meson": {"compile": _BUILD, "test": _TEST},
    "mix": {"test": _TEST, "compile": _BUILD},
    "mkdocs": _BUILDING,
    "next": _BUILDING,
    "ng": _BOTH,
    "npm": {"test": _TEST, "t": _TEST, "tst": _TEST, **_PUBLISHING},
    "nuxt": _BUILDING,
    "playwright": _TESTING,
    "pnpm": {"test": _TEST, "t": _TEST, **_PUBLISHING},
    "podman": _BUILDING,
    "poetry": _BUILDING | _PUBLISHING,
    "rails": _TESTING,
    "react-scripts": _BOTH,
    "sbt": {"test": _TEST, "compile": _BUILD},
    "stack": _BOTH,
    "swift": _BOTH,
    "tauri": _BUILDING,
    "turbo": _BOTH,
    "twine": {"upload": _RELEASE},
    "uv": _BUILDING | _PUBLISHING,
    "vite": _BUILDING,
    "vsce": _PUBLISHING,
    "wails": _BUILDING,
    "wasm-pack": _BOTH,
    "yarn": {"test": _TEST, "npm publish": _RELEASE, **_PUBLISHING},
    "zig": _BUILDING | _TESTING,
}
"""Programs with the subcommands that count; `build` of Python is `python -m build`."""

_TAKES_VALUE: dict[str, tuple[str, ...]] = {
    "bun": ("--cwd", "--filter", "-F"),
    "cargo": ("--manifest-path", "-C", "--config"),
    "docker": ("-H", "--context", "-c"),
    "go": ("-C",),
    "make": ("-C", "-f", "-j", "-I", "-o", "-W", "-l"),
    "mise": ("-C", "--cd", "-E", "--env"),
    "npm": ("--prefix", "-w", "--workspace", "-C"),
    "pnpm": ("-C", "--dir", "--filter", "-F"),
    "poetry": ("-C", "--directory", "-P"),
    "task": ("-d", "--dir", "-t", "--taskfile"),
    "turbo": ("--cwd", "--filter", "-F"),
    "uv": ("--directory", "--project"),
    "yarn": ("--cwd",),
    "just": ("-f", "--justfile", "-d", "--working-directory", "--set"),
}
"""Options before the subcommand that take a value."""

_SCRIPTED = {
    "npm": ("run", "run-script"),
    "pnpm": ("run",),
    "yarn": ("run",),
    "bun": ("run",),
    "mise": ("run", "r"),
    "turbo": ("run",),
    "deno": ("task",),
    "composer": ("run", "run-script"),
    "pdm": ("run",),
}
"""Programs that run a task which the project names, after these words."""

_TASKS = frozenset({"gmake", "invoke", "inv", "just", "make", "poe", "rake", "task"})
"""Programs whose words are such tasks."""

_LIFECYCLES = frozenset({"gradle", "gradlew", "gradlew.bat", "mvn", "mvnw", "xcodebuild"})
"""Programs that take several tasks with fixed names."""

_TEST_TASK = later(
    r"(?:(?:unit|e2e|integration|int|smoke|acceptance|ci|run)[-_:.]?)?(?:tests?|specs?)(?:[-_:.][\w:.-]*)?"
    r"|[\w:.-]*[:_-]tests?|e2e(?:[-_:.][\w-]+)?|ci"
)
_NO_TEST_TASK = later(r"lint|type|watch|build|setup|clean|fixture|seed|format|fmt|report|install|update|dev|ui\b")
_BUILD_TASK = later(
    r"(?:build|compile|bundle|typecheck|type-check|check[-:]types|tsc)(?:[-_:.][\w:.-]*)?|[\w:.-]*[:_-](?:build|compile)"
)
_NO_BUILD_TASK = later(r"clean|watch|lint|serve|info|scan")
_LIFECYCLE_TEST = later(r"(?:[\w-]*:)*(?:\w*[tT]est(?:\w*UnitTest)?|check|surefire:test|test-without-building)")
_LIFECYCLE_BUILD = later(
    r"(?:[\w-]*:)*(?:build|assemble\w*|compile\w*|package|install|verify|bootJar|shadowJar|archive|build-for-testing)"
)

_WITHOUT_WORDS = ("build", "gmake", "hugo", "make", "xcodebuild")
"""Programs that build where no task is named."""
_ODD = ("cmake", "goreleaser", "manage.py", "node", "php")
"""Programs that say what they do in a way of their own."""
_WITH_WORDS = frozenset({*_SUBCOMMANDS, *_SCRIPTED, *_TASKS, *_LIFECYCLES, *_ODD})
_WITHOUT = frozenset({*_ALONE, *_WITHOUT_WORDS})
_ACTING = later(
    r"test|spec|e2e|build|compile|bundle|type-?check|check|tsc|publish|install|package|verify|assemble|[jJ]ar\b|archive"
    r"|upload|push|pack|develop|release|\b(?:b|t|tst|ci)\b"
)

_ONLY_TELLS = frozenset(
    """
    --help -help --version --collect-only --co --list --listTests --list-tests --dry-run -showBuildSettings
    -showsdks -list --print-targets --fixtures --showconfig --init --show-config --showConfig
    """.split()  # noqa: SIM905
)
"""Words with which a program only tells something."""
_TELLS_WITH_LETTER = {"make": "-n", "gmake": "-n", "ctest": "-N", "go": "-n", "just": "-l", "tsc": "-v", "gcc": "-v"}


def is_meant(words: Set[str], command: str) -> bool:
    """Whether a command of these words may run a program that tests, builds or publishes."""
    if not _WITHOUT.isdisjoint(words):
        return True
    return not _WITH_WORDS.isdisjoint(words) and _ACTING.search(command) is not None


def task_of(words: tuple[str, ...]) -> Task | None:
    """Return what a program without wrappers is run for; None if it neither tests nor builds nor publishes."""
    if not words or not _ONLY_TELLS.isdisjoint(words[1:]):
        return None
    name = words[0]
    if _TELLS_WITH_LETTER.get(name) in words[1:]:
        return None
    rest = behind_options(words[1:], _TAKES_VALUE.get(name, ()))
    if name in _ALONE:
        return _alone(name, rest)
    if name in _LIFECYCLES:
        return _lifecycle(name, rest)
    if name in _TASKS:
        return _named_task(name, rest)
    return _subcommand(name, rest, words)


def _alone(name: str, rest: tuple[str, ...]) -> Task | None:
    if rest[:1] in (("list",), ("init",), ("bench",), ("serve",), ("help",)) or (
        name == "parcel" and rest[:1] != ("build",)
    ):
        return None
    return Task(_ALONE[name], name)


def _lifecycle(name: str, rest: tuple[str, ...]) -> Task | None:
    tasks = [word for word in rest if not word.startswith("-")]
    short = name.removesuffix(".bat")
    for kind, pattern in ((_TEST, _LIFECYCLE_TEST), (_BUILD, _LIFECYCLE_BUILD)):
        found = next((task for task in tasks if pattern.fullmatch(task)), None)
        if found is not None:
            return Task(kind, f"{short} {found}")
    builds = name == "xcodebuild" and not {"clean", "docbuild", "analyze"}.issuperset(tasks or ["clean"])
    return Task(_BUILD, name) if builds else None


def _named_task(name: str, rest: tuple[str, ...]) -> Task | None:
    tasks = [word for word in rest if not word.startswith("-") and "=" not in word]
    if not tasks and name in ("make", "gmake"):
        return Task(_BUILD, name)
    for task in tasks:
        found = _kind_of(task, everything=name in ("make", "gmake"))
        if found is not None:
            return Task(found, f"{name} {task}")
    return None


def _subcommand(name: str, rest: tuple[str, ...], words: tuple[str, ...]) -> Task | None:
    if rest[:1] and rest[0] in _SCRIPTED.get(name, ()):
        task = next((word for word in rest[1:] if not word.startswith("-")), "")
        kind = _kind_of(task)
        return Task(kind, f"{name} {rest[0]} {task}") if kind else None
    if name == "mise":
        return _named_task(name, rest[:1])
    if name == "yarn" and rest[:1] == ("workspace",):
        rest = rest[2:]
    if name in ("yarn", "pnpm") and rest and rest[0] not in (*_SUBCOMMANDS[name], "ci"):
        kind = _kind_of(rest[0])
        return Task(kind, f"{name} {rest[0]}") if kind else task_of(rest) if rest[0] in _ALONE else None
    return _odd(name, rest, words) or _known(name, rest)


def _known(name: str, rest: tuple[str, ...]) -> Task | None:
    for count in (2, 1):
        word = " ".join(rest[:count])
        kind = _SUBCOMMANDS.get(name, {}).get(word)
        if kind is not None and len(rest) >= count:
            return Task(kind, f"{name} {word}")
    return None


def _odd(name: str, rest: tuple[str, ...], words: tuple[str, ...]) -> Task | None:
    """Return the task of programs that say it in a way of their own."""
    if name == "go" and rest[:1] == ("test",) and ("-c" in rest or "-list" in rest):
        return Task(_BUILD, "go test -c") if "-c" in rest else None
    if name == "cargo" and rest[:1] == ("test",) and "--no-run" in rest:
        return Task(_BUILD, "cargo test --no-run")
    if name == "bun" and rest[:1] == ("test",):
        return Task(_TEST, "bun test")
    if name == "build" and not any(word for word in rest if "/" not in word):
        return Task(_BUILD, "python -m build")
    if name == "node" and "--test" in words:
        return Task(_TEST, "node --test")
    if name == "cmake" and "--build" in words:
        return Task(_BUILD, "cmake --build")
    if name == "hugo" and not rest:
        return Task(_BUILD, "hugo")
    if name.startswith("python") and rest[:1] and rest[0].endswith("manage.py") and rest[1:2] == ("test",):
        return Task(_TEST, "manage.py test")
    if name == "php" and rest[:2] == ("artisan", "test"):
        return Task(_TEST, "artisan test")
    if name == "goreleaser" and rest[:1] in (("build",), ("release",)):
        real = rest[0] == "release" and "--snapshot" not in rest
        return Task(_RELEASE if real else _BUILD, f"goreleaser {rest[0]}")
    return None


def _kind_of(task: str, *, everything: bool = False) -> LandmarkKind | None:
    """Return what a task with this name in a project does, if that is known."""
    if _TEST_TASK.fullmatch(task) and not _NO_TEST_TASK.search(task):
        return _TEST
    if everything and task == "all":
        return _BUILD
    return _BUILD if _BUILD_TASK.fullmatch(task) and not _NO_BUILD_TASK.search(task) else None
