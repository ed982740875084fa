"""Programs that only run another one: `uv run pytest` is pytest."""

from __future__ import annotations

_UV = ("--with", "--with-requirements", "--python", "-p", "--extra", "--group", "--only-group", "--no-group",
       "--package", "--project", "--directory", "--env-file", "--index", "--env", "-m", "--module")  # fmt: skip
_CONDA = ("-n", "--name", "-p", "--prefix", "--cwd")

_RUNNERS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("uv", "run"): _UV,
    ("uvx",): ("--from", "--with", "--python", "-p"),
    ("poetry", "run"): (),
    ("pdm", "run"): ("-p", "--project"),
    ("pipenv", "run"): (),
    ("rye", "run"): (),
    ("pixi", "run"): ("-e", "--environment"),
    ("conda", "run"): _CONDA,
    ("mamba", "run"): _CONDA,
    ("micromamba", "run"): _CONDA,
    ("npx",): ("-p", "--package", "-w", "--workspace", "--prefix"),
    ("bunx",): ("-p", "--package"),
    ("bun", "x"): ("-p", "--package"),
    ("pnpm", "exec"): (),
    ("pnpm", "dlx"): (),
    ("yarn", "exec"): (),
    ("yarn", "dlx"): (),
    ("npm", "exec"): ("-w", "--workspace"),
    ("bundle", "exec"): (),
    ("mise", "exec"): (),
    ("mise", "x"): (),
    ("asdf", "exec"): (),
    ("doppler", "run"): ("-p", "--project", "-c", "--config", "-t", "--token"),
    ("corepack",): (),
    ("op", "run"): ("--env-file",),
    ("nix", "develop"): (),
    ("dotenv",): ("-f", "-e"),
    ("cross-env",): (),
    ("xvfb-run",): ("-s", "-n"),
    ("caffeinate",): (),
    ("gtimeout",): ("-s", "-k"),
    ("coverage", "run"): ("--source", "--rcfile", "--include", "--omit"),
    ("docker", "exec"): ("-e", "--env", "-u", "--user", "-w", "--workdir"),
    ("docker", "compose", "exec"): ("-e", "--env", "-u", "--user", "-w", "--workdir"),
    ("docker", "compose", "run"): ("-e", "--env", "-u", "--user", "-w", "--workdir", "-v", "--name"),
    ("docker-compose", "exec"): ("-e", "--env", "-u", "--user", "-w", "--workdir"),
    ("docker-compose", "run"): ("-e", "--env", "-u", "--user", "-w", "--workdir", "-v", "--name"),
}
"""The words that run another program, and their options that take a value."""

_BY_NAME: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {
    name: [(runner, takes) for runner, takes in _RUNNERS.items() if runner[0] == name] for name, *_ in _RUNNERS
}

_NAMED_FIRST = {"docker", "docker-compose", "gtimeout"}
"""Programs that take one word before the program that they run: a container, a service, a time."""

_PYTHON = ("python", "pypy")
_MOST = 4


def unwrapped(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of the program that is really run, its own name without its folder."""
    for _ in range(_MOST):
        inner = _inner(words)
        if inner is None:
            break
        words = inner
    return (name_of(words[0]), *words[1:]) if words else ()


def _inner(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words of the program that another one runs; None if it is no such program."""
    if not words:
        return None
    name = name_of(words[0])
    if name.startswith(_PYTHON):
        return _module(words)
    for runner, takes in _BY_NAME.get(name, ()):
        if words[1 : len(runner)] == runner[1:]:
            rest = behind_options(words[len(runner) :], takes)
            return rest[1:] if name in _NAMED_FIRST else _module(("python", *rest)) if rest[:1] == ("-m",) else rest
    return None


def _module(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the module that Python runs, as a program."""
    at = next((n for n, word in enumerate(words[1:8], 1) if word == "-m" or not word.startswith("-")), 0)
    return words[at + 1 :] if at and words[at] == "-m" and len(words) > at + 1 else None


def behind_options(words: tuple[str, ...], takes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words from the first one on that is neither an option nor the value of one of these."""
    at = 0
    while at < len(words) and words[at].startswith(("-", "+")):
        if words[at] == "--":
            return words[at + 1 :]
        if words[at] == "-m" and "-m" in takes:
            return words[at:]
        at += 2 if words[at] in takes else 1
    while at < len(words) and "=" in words[at] and words[at].split("=")[0].isidentifier():
        at += 1
    return words[at:]


def name_of(word: str) -> str:
    """Return the name of a program without its folder, in lower case."""
    return word.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe").removesuffix(".cmd")
