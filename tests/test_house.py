"""The rules of the house, enforced by checks of the code, the wheel, the lock and real processes."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from agtrace_indexer.providers import registry
from mcp.client import Client
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from agtrace.commands.group import _COMMANDS
from agtrace.serving import server
from agtrace.settings import load
from agtrace.settings.live import Live
from agtrace.tools import ANSWERED, TOOLS
from tests.conftest import SAMPLES, copy_index
from tests.documents import documents
from tests.rooms import SOURCES as PACKAGES
from tests.rooms import nodes, parsed

ROOT = Path(__file__).resolve().parents[1]
SNAPSHOT = ROOT / "tests" / "agtrace" / "tools_list.json"
FACTS_OF_AGENTS = {
    *("events", "events.tools", "providers", "providers.provider", "providers.registry", "providers.unread"),
    *(f"providers.{name}" for name in registry.AGENTS),
}
"""Modules of the indexer that say what the agents are and load quickly."""

_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NETWORK = {
    *("requests", "httpx", "httpx2", "aiohttp", "urllib3", "websockets", "socket", "socketserver", "ssl"),
    *("urllib.request", "http.client", "http.server", "ftplib", "smtplib", "xmlrpc"),
}


# -- modules and what they import ------------------------------------------------------------------


class Module(NamedTuple):
    """A module of one of the packages."""

    name: str
    package: str
    path: Path

    @property
    def tree(self) -> ast.Module:
        return parsed(self.path)

    def __str__(self) -> str:
        return self.name


def _modules() -> Iterator[Module]:
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield Module(name, package, path)


MODULES = {module.name: module for module in _modules()}
"""A rule for all of them is one test, which names the module that breaks it: a test for each took most of the time."""


def _imports(module: Module, given: Iterator[ast.AST] | None = None) -> Iterator[str]:
    """Every module that is imported anywhere in a module, and every name that might be one."""
    for node in given or nodes(module.path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _last_name(node.func) == "loader":
            yield f"agtrace_indexer.providers.{ast.literal_eval(node.args[0])}".partition(":")[0]
        elif isinstance(node, ast.Call) and _last_name(node.func).endswith(("import_module", "__import__")):
            if module.name == "agtrace_indexer.providers.provider":
                continue  # its `loader` is read where it is called
            if module.name == "agtrace.tools":
                yield from (f"agtrace.tools.{tool}" for tool in ANSWERED)
                continue
            if module.name == "agtrace.commands.group":
                yield from (f"agtrace.commands.{command.split('.')[0]}" for _, command in _COMMANDS.values())
                continue
            assert node.args and isinstance(node.args[0], ast.Constant), f"{module}: an import nobody can read"
            yield str(node.args[0].value)


@cache
def _imported(module: Module) -> frozenset[str]:
    return frozenset(_imports(module))


def _last_name(function: ast.expr) -> str:
    """The name behind the last dot of what is called; empty where there is none."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".") if module.path.name == "__init__.py" else module.name.split(".")[:-1]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported: all but the bodies of functions and of `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from _at_import(node)


def test_imports_never_go_against_the_arrow_from_schema_over_indexer_and_team_to_agtrace() -> None:
    order = list(PACKAGES)
    for module in MODULES.values():
        above = order[order.index(module.package) + 1 :]
        assert {name for name in _imported(module) if name.split(".")[0] in above} == set(), module.name


def test_no_module_can_reach_the_network_one_can_be_reached_and_only_the_server_knows_mcp() -> None:
    """`socket` is there to listen with; what calls out does so only once it is set up."""
    allowed = {
        "agtrace.serving.connections": {"socket"},
        "agtrace.pruning.runner": {"http.client"},  # asks the server of a run whether it is there
        "agtrace.pruning.pruners": {"httpx2"},
    }
    for module in MODULES.values():
        families = _imported(module) | {name.split(".")[0] for name in _imported(module)}
        assert families & NETWORK == allowed.get(module.name, set()), module.name
        if not module.name.startswith(("agtrace.serving.", "agtrace.web.", "agtrace.pruning.")):
            assert families & {"mcp", "mcp_types", "starlette", "uvicorn"} == set(), module.name
        if module.package != "agtrace_team":
            assert "psycopg" not in families, module.name


def test_only_the_server_over_http_can_load_the_library_for_monitoring() -> None:
    page, library = "agtrace.answers.telemetry.prometheus", "prometheus_client"
    loads = {name for name, module in MODULES.items() if library in {i.split(".")[0] for i in _imported(module)}}
    assert loads == {page}
    assert {name for name, module in MODULES.items() if page in _imported(module)} == {"agtrace.serving.http_transport"}


def test_only_the_settings_read_the_environment() -> None:
    words = {"environ", "environb", "getenv", "getenvb", "expandvars"}
    reading = set()
    for module in MODULES.values():
        read = [node.attr for node in nodes(module.path) if isinstance(node, ast.Attribute) and node.attr in words]
        if read or any(name.rpartition(".")[2] in words for name in _imported(module)):
            reading.add(module.name)
    assert reading == {"agtrace.settings.environment"}


def test_every_public_module_class_and_function_says_what_it_is() -> None:
    assert [name for module in MODULES.values() for name in _undocumented(module.name, module.tree)] == []


def _undocumented(name: str, node: ast.AST) -> Iterator[str]:
    """What is public and has no docstring, below a module or class: special methods are documented by Python."""
    if isinstance(node, (ast.Module, *_DEFINITIONS)) and not (ast.get_docstring(node) or "").strip():
        yield name
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for inner in ast.iter_child_nodes(node):
        if not isinstance(inner, _DEFINITIONS):
            yield from _undocumented("", inner) if isinstance(inner, (ast.If, ast.Try, ast.With)) else ()
        elif not inner.name.startswith("_"):
            yield from _undocumented(f"{name}.{inner.name}", inner)


# -- what a process loads --------------------------------------------------------------------------


class Loaded(NamedTuple):
    """A module that a process loaded, with the module that asked for it first."""

    name: str
    importer: str


def _run(*arguments: str) -> list[Loaded]:
    """Run `agtrace` without input in a process of its own, and give the modules that it loaded."""
    code = f"import sys; sys.argv[1:] = {list(arguments)!r}; from agtrace.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    lines = re.findall(r"^import time: +\d+ \| +\d+ \|( +)(\S+)$", ended.stderr, re.MULTILINE)
    loaded: list[Loaded] = []
    importers: dict[int, str] = {}
    for indent, name in reversed(lines):  # a module stands behind those that it imports, which are indented
        importers[len(indent)] = name
        loaded.append(Loaded(name, importers.get(len(indent) - 2, "")))
    assert "agtrace.cli" in {module.name for module in loaded}
    return loaded


def _families(loaded: list[Loaded]) -> set[str]:
    return {module.name.split(".")[0] for module in loaded}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_no_server_no_database_no_models_and_no_tables(option: str) -> None:
    heavy = {"mcp", "mcp_types", "sqlite3", "pydantic", "pydantic_core", "rich", "orjson", "zstandard", "hyperscan"}
    assert _families(_run(option)) & heavy == set()


def test_indexing_unchanged_logs_loads_no_parser_and_nothing_that_reads_or_writes_logs(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "codex", tmp_path / "logs")
    first = _run("index", str(tmp_path / "logs"))
    assert "agtrace_indexer.providers.codex.tools" in {module.name for module in first}
    again = _run("index", str(tmp_path / "logs"))
    ours = {module.name.removeprefix("agtrace_indexer.") for module in again}
    assert "run" in ours
    assert {name for name in ours if name.startswith("providers")} <= FACTS_OF_AGENTS, "no parser"
    assert {name for name in ours if name.split(".")[0] in ("texts", "parallel", "rebuild")} == set()
    assert {name for name in ours if name.split(".")[0] == "reader"} == {"reader", "reader.plan"}
    assert ours & {"index.store", "events.assembly", "events.searchable_text", "logs.decoding"} == set()
    assert {name for name in ours if name.startswith("redact")} == {"redact"}, "the digest of the rules, and no rule"
    others = {"mcp", "mcp_types", "pydantic", "pydantic_core", "rich", "orjson", "zstandard"}
    others |= {"watchdog", "hyperscan", "sqlite_utils"}
    assert _families(again) & others == set()


def test_commands_of_every_day_load_no_models(indexed_samples: Path, database: Path) -> None:
    copy_index(indexed_samples, database)
    for command in (["sessions"], ["search", "database is locked"], ["show", "last"], ["projects"]):
        assert _families(_run(*command)) & {"pydantic", "pydantic_core", "mcp", "mcp_types"} == set(), command


def test_the_mcp_server_starts_without_the_command_line() -> None:
    """Nothing of ours loads click or rich; the SDK itself loads click, by way of its HTTP transport."""
    loaded = _run("mcp")
    assert {"mcp", "agtrace.serving.server"} <= {module.name for module in loaded}
    assert {"rich", "sqlite_utils"} & _families(loaded) == set()
    assert {module.importer.split(".")[0] for module in loaded if module.name == "click"} & set(PACKAGES) == set()
    ours = [MODULES[module.name] for module in loaded if module.name in MODULES]
    asking = [m.name for m in ours if {"click", "rich"} & {i.split(".")[0] for i in _imports(m, _at_import(m.tree))}]
    assert asking == []


# -- the wheel -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built offline from a copy of what a checkout has."""
    checkout, built = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, checkout)
    for name in ("agtrace", "indexer", "schema", "team", "tests"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True, timeout=300)
    (path,) = built.iterdir()
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_packages_whole_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    files = set(wheel.namelist())
    tops = {name.split("/")[0] for name in files}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
    assert len(tops) == len(PACKAGES) + 1
    assert {f"{name}/py.typed" for name in PACKAGES} <= files
    sources = {m.path.relative_to(PACKAGES[m.package].parent).as_posix() for m in MODULES.values()}
    assert {name for name in files if name.endswith(".py")} == sources


def test_the_wheel_brings_one_command_and_the_licence(wheel: zipfile.ZipFile) -> None:
    (info,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    assert wheel.read(f"{info}/entry_points.txt").decode().split("\n") == [
        "[console_scripts]",
        "agtrace = agtrace.cli:main",
        "",
    ]
    assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_wheel_runs_in_a_bare_environment(wheel: zipfile.ZipFile, version: str, tmp_path: Path) -> None:
    """With its dependencies from the package index; skipped without that, or without this Python."""

    def uv(*arguments: str) -> bool:
        asked = os.environ | {"UV_PYTHON_DOWNLOADS": "never"}
        return not subprocess.run(["uv", *arguments], cwd=tmp_path, env=asked, check=False).returncode

    installing = ("pip", "install", "--python", "bare", str(wheel.filename))
    if shutil.which("uv") is None or not (uv("venv", "--python", version, "bare") and uv(*installing)):
        pytest.skip(f"uv, Python {version} or the package index isn't here")
    agtrace, home = tmp_path / "bare" / "bin" / "agtrace", {"HOME": str(tmp_path)}
    for arguments in (["--version"], ["index", str(ROOT / "sample_sessions")], ["search", "database is locked"]):
        assert subprocess.run([agtrace, *arguments], env=home, check=True, capture_output=True).stdout


# -- files of the repository -----------------------------------------------------------------------


def test_no_tracked_file_names_a_place_of_this_machine() -> None:
    """No path that exists beside or in this checkout, nor the environment of the tests, stands in a file."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    tracked = [ROOT / os.fsdecode(name) for name in listed.split(b"\0") if name]
    parent = ROOT.parent
    shared_place = parent in (Path("/"), Path(tempfile.gettempdir()).resolve(), Path("/home"))
    below = re.compile(re.escape(os.fsencode(ROOT if shared_place else parent)) + rb"/[\w.-]+")
    places = [os.fsencode(ROOT), *([os.fsencode(sys.prefix)] if sys.prefix != sys.base_prefix else [])]
    found = []
    for path in tracked:
        if not path.is_file():
            continue
        data = path.read_bytes()
        named = {place for place in places if re.search(re.escape(place) + rb"(?![\w-])", data)}
        named |= {place for place in below.findall(data) if os.path.exists(place)}
        found += [(path.relative_to(ROOT).as_posix(), os.fsdecode(place)) for place in named]
    assert found == []


def _locked() -> dict[str, tuple[Requirement, int]]:
    """The requirements of the lock by name, each with the number of its hashes."""
    text = re.sub(r"^\s*#.*$", "", (ROOT / "requirements.lock").read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: dict[str, tuple[Requirement, int]] = {}
    for entry in filter(None, (" ".join(line.split()) for line in text.replace("\\\n", " ").split("\n"))):
        written, *hashes = entry.split(" --hash=")
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in hashes), written
        requirement = Requirement(written)
        found[canonicalize_name(requirement.name)] = (requirement, len(hashes))
    return found


def test_the_lock_names_exact_versions_with_hashes_and_no_address() -> None:
    assert re.search(r"https?:|://|--(?:extra-)?index-url|--find-links|(?:^|\n)-e ", _lock_text()) is None
    for requirement, hashes in _locked().values():
        assert [clause.operator for clause in requirement.specifier] == ["=="], requirement
        assert requirement.url is None and hashes > 0, requirement


def _lock_text() -> str:
    return (ROOT / "requirements.lock").read_text(encoding="utf-8")


def test_no_dependency_may_be_of_a_later_major_version_than_the_lock_has() -> None:
    """`pipx install .` takes the newest versions that it may."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for wanted in map(Requirement, project["project"]["dependencies"]):
        (tested,) = (Version(clause.version) for clause in _locked()[canonicalize_name(wanted.name)][0].specifier)
        bounds = [Version(clause.version) for clause in wanted.specifier if clause.operator == "<"]
        assert len(bounds) == 1 and tested < bounds[0] <= Version(str(tested.major + 1)), wanted


def test_the_lock_satisfies_every_dependency_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    asked = [
        *project["project"]["dependencies"],
        *extras["dev"],
        *extras["team"],
        *project["build-system"]["requires"],
    ]
    asked.remove("agtrace[team]")  # ours, and listed by itself
    locked = _locked()
    for wanted in map(Requirement, asked):
        assert canonicalize_name(wanted.name) in locked, wanted
        (clause,) = locked[canonicalize_name(wanted.name)][0].specifier
        assert wanted.specifier.contains(clause.version, prereleases=True), wanted


def test_what_is_generated_from_the_code_is_current() -> None:
    for path, text in documents().items():
        assert path.read_text(encoding="utf-8") == text, "run make docs"


# -- the list of tools -----------------------------------------------------------------------------


@pytest.fixture
def listed() -> list[dict[str, Any]]:
    """The tools as a client gets them."""

    async def ask() -> list[dict[str, Any]]:
        async with Client(server.make_server(Live.fixed(load()))) as client:
            answer = await client.list_tools()
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in answer.tools]

    return anyio.run(ask)


def test_the_tool_list_is_the_committed_one(listed: list[dict[str, Any]]) -> None:
    """A changed name, description or schema shows in a review: AGTRACE_WRITE_SNAPSHOTS=1 writes the snapshot."""
    text = json.dumps(listed, ensure_ascii=False, indent=2) + "\n"
    if os.environ.get("AGTRACE_WRITE_SNAPSHOTS") == "1":
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == text


def test_every_tool_is_described_and_only_reads(listed: list[dict[str, Any]]) -> None:
    assert [tool["name"] for tool in listed] == list(TOOLS)
    for tool in listed:
        assert {"title", "description", "inputSchema", "outputSchema"} <= tool.keys()
        assert tool["annotations"] == {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}


def test_the_tool_list_takes_little_of_a_context(listed: list[dict[str, Any]]) -> None:
    def size(keys: tuple[str, ...]) -> int:
        parts = [{key: tool[key] for key in keys} for tool in listed]
        return len(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode())

    assert size(("name", "description", "inputSchema")) < 8_192
    assert size(("outputSchema",)) < 6_400


def test_the_first_250_characters_of_the_instructions_name_the_way_from_search_to_event() -> None:
    start = server.INSTRUCTIONS[:250]
    assert start.index("search_event_previews") < start.index("get_event_details")


# -- promises and their tests -----------------------------------------------------------------------


def test_every_test_that_the_promises_of_security_name_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    tests = re.findall(r"`(tests/\S+\.py)::(\w+)`", text)
    assert len(tests) == text.count("::") > 40
    named: dict[str, set[str]] = {}
    for path, name in tests:
        named.setdefault(path, set()).add(name)
    for path, names in named.items():
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert names - there == set(), path
