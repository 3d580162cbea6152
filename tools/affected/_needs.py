"""What the code of one Python file needs: modules, programs that it starts, files that it reads."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING

from tools.affected._running import lazy_names, named, running, texts, words
from tools.import_graph import ROOT, file_of, files_of, modules_in, nodes, package_of

if TYPE_CHECKING:
    from pathlib import Path

#: The full name of a module of ours in a text, the last part perhaps still open.
MODULE = re.compile(
    r"(?<![\w.])((?:antipode(?:_shims|_testing|_cli)?|tests|benchmarks|examples|tools)(?:\.\w+)*)"
    r"(\.\0)?"
)
#: Modules that find others by names which they put together, and where these lie.
LOADS = {
    "antipode/_setup/setup.py": ("shims/antipode_shims", "antipode/integrations"),
    "antipode_cli/_doctor_command.py": ("shims/antipode_shims", "antipode/integrations"),
}
#: Methods whose first argument is a part of a path.
OF_PATHS = {"with_name", "joinpath", "glob", "rglob"}
#: Folders of what is built of the files beside them.
MADE = {"build", "target"}
#: Starts the agents of all languages; each of its users needs those that it names.
AGENTS = ROOT / "tests" / "conformance" / "_agents.py"
#: The fixture that lends them, and the file that has it, which the outermost conftest.py imports.
LEND, LENDING = "lend", "tests/agent/lending.py"
LANGUAGES = {"python": "tests/agent", "java": "java", "cpp": "cpp"}


@cache
def project() -> frozenset[str]:
    """The files of the project, committed or not, as git names them."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(listing, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return frozenset(name for name in said.split("\0") if name and (ROOT / name).is_file())


@cache
def below(folder: str) -> frozenset[str]:
    """The files of the project in *folder* and its folders."""
    return frozenset(name for name in project() if name.startswith(f"{folder}/"))


@cache
def needs_of(path: Path) -> frozenset[str]:
    """The files that *path* needs once it runs."""
    return code_needs(path, running(path)) | frozenset(
        name for folder in LOADS.get(named(path), ()) for name in below(folder)
    )


def code_needs(path: Path, code: ast.Module) -> frozenset[str]:
    """What *code*, the whole of *path* or a part, needs."""
    imported = _imported(path, code)
    found = {named(file) for file in imported} | _by_text(path, code)
    if path == AGENTS:
        return frozenset(found - below("tests/agent")) | {"tests/agent/client.py"}
    folders = {path.parent, *path.parents[: len(path.relative_to(ROOT).parts)]}
    folders |= {file.parent for file in imported}
    found |= _read(code, {"" if folder == ROOT else named(folder) for folder in folders})
    if _uses_own_folder(code):
        found |= {name for name in below(named(path.parent)) if not name.endswith(".py")}
    lends = LEND in words(code)
    if lends:
        found.add(LENDING)
    if lends or AGENTS in imported:
        found |= _agents(code)
    return frozenset(found) - {named(path)}


def _imported(path: Path, code: ast.Module) -> frozenset[Path]:
    """What imports load: modules, the packages that these lie in, and lazy names that are used."""
    modules = set(modules_in(code, package_of(path)))
    used = {
        f"{node.value.id}.{node.attr}"
        for node in nodes(code, ast.Attribute)
        if isinstance(node.value, ast.Name)
    }
    modules |= {whole for name in modules | used if (whole := _lazy(name))}
    return files_of([*modules, *(name for module in modules for name in _packages(module))])


def _lazy(name: str) -> str | None:
    """What *name* is in full, where a package loads it once it is used."""
    package, _, last = name.rpartition(".")
    file = file_of(package) if package else None
    return lazy_names(file).get(last) if file else None


def _packages(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _by_text(path: Path, code: ast.Module) -> set[str]:
    """Modules that texts name: patched, started as programs, or imported later."""
    found: set[str] = set()
    if _completes_own_name(code) and not lazy_names(path):
        found |= below(named(path.parent))
    said = texts(code)
    for text in said:
        for match in MODULE.finditer(text):
            name, is_open = match[1], bool(match[2])
            if is_open and name == "antipode" and "import_module" not in words(code):
                continue  # The name of a metric, or of a queue.
            if "." in name or is_open or ("-m" in said and name == text):
                found |= _module(name, is_open=is_open)
    return found


def _completes_own_name(code: ast.Module) -> bool:
    """Whether it makes names of modules of its own, as f"{__name__}.{name}"."""
    return any(
        isinstance(node.value, ast.Name) and node.value.id == "__name__"
        for node in nodes(code, ast.FormattedValue)
    )


def _module(name: str, *, is_open: bool) -> set[str]:
    """The longest module that *name* begins with, the packages around it, its program."""
    parts = name.split(".")
    while parts and not (file_of(".".join(parts)) or _folder(parts)):
        parts.pop()
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    files = {file for each in names if (file := file_of(each))}
    if parts and name == ".".join(parts) and (program := file_of(f"{name}.__main__")):
        files.add(program)
    found = {named(file) for file in files}
    if is_open and name == ".".join(parts) and (folder := _folder(parts)):
        found |= below(named(folder))
    return found


def _folder(parts: list[str]) -> Path | None:
    """The folder of a package, of one without an `__init__.py`, too."""
    for root in (ROOT / "shims", ROOT / "testing", ROOT):
        folder = root.joinpath(*parts)
        if parts and folder.is_dir():
            return folder
    return None


def _read(code: ast.Module, folders: set[str]) -> set[str]:
    """Files and folders that paths in *code* name, from any of *folders* on."""
    found: set[str] = set()
    for parts in _paths(code):
        for folder in folders:
            found |= _longest(folder, parts)
    return found


def _longest(folder: str, parts: tuple[str, ...]) -> frozenset[str]:
    """The file, or the files of the folder, that *parts* lead to from *folder* on.

    What is built there is made of all files of the folder where it would be.
    """
    here, left = folder, list(parts)
    while left:
        further = f"{here}/{left[0]}" if here else left[0]
        if further not in project() and further not in _folders():
            break
        here = further
        left.pop(0)
    if here == folder or (left and left[0] not in MADE):
        return frozenset()
    return frozenset({here}) if here in project() else below(here)


@cache
def _folders() -> frozenset[str]:
    """The folders of the project."""
    files = (name.split("/") for name in project())
    return frozenset("/".join(parts[:end]) for parts in files for end in range(1, len(parts)))


def _paths(code: ast.Module) -> set[tuple[str, ...]]:
    """The parts of each path: of `folder / "a" / "b"`, of methods, of texts with a slash."""
    found = {_split(text) for text in texts(code) if "/" in text}
    found |= {_divided(node) for node in nodes(code, ast.BinOp)}
    for node in nodes(code, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in OF_PATHS:
            found.update(map(_part, node.args[:1]))
    return found - {()}


def _divided(node: ast.expr) -> tuple[str, ...]:
    """The constant parts of a path from its first one on, to where something else follows."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
        return ()
    return (*_divided(node.left), *_part(node.right))


def _part(node: ast.expr) -> tuple[str, ...]:
    return (
        _split(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ()
    )


def _split(text: str) -> tuple[str, ...]:
    """The parts of a path, to the first with a pattern or a gap in it; nothing of other texts."""
    if re.search(r"[\s:]|\.\.", text):
        return ()
    parts = text.strip("/").split("/")
    named_ones = takewhile(lambda part: not re.search(r"[\0*?\[{]", part), parts)
    return tuple(part for part in named_ones if part not in {"", "."})


def _uses_own_folder(code: ast.Module) -> bool:
    """Whether it reads files beside itself whose names it puts together or finds."""
    attributes = words(code)
    return "__file__" in attributes and any(
        isinstance(node.op, ast.Div) and not isinstance(node.right, ast.Constant)
        for node in nodes(code, ast.BinOp)
    )


def _agents(code: ast.Module) -> set[str]:
    """The agents that a user of `AGENTS` starts: those of the languages it names, or all."""
    said = texts(code)
    languages = [name for name in LANGUAGES if name in said]
    if not languages or words(code) & {"LANGUAGES", "BUILT"}:
        languages = list(LANGUAGES)
    return {name for language in languages for name in below(LANGUAGES[language])}
