"""Every datastore's shim has the same rooms, so that whoever knows one shim finds things in all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.import_graph import reached

SHIMS = Path(__file__).resolve().parents[2] / "shims" / "antipode_shims"
ROOMS = {
    "_shim": "Table 2's API, and the registration of a datastore",
    "_table2": "what writing and reading with the lineage beside the value mean; no I/O",
    "_instrument": "the entry for an application's own clients",
    "_clients": "one file a client library, and what they share",
    "_statements": "what a statement does: read, write, neither, unknown",
    "_commands": "the same, of stores that have commands",
    "_position": "the store's positions: parsed, compared, judged",
    "_look": "one look at a server, as a conversation without I/O",
    "_endpoint": "the library's own connections",
    "_format": "how a lineage lies with a value or a message: Table 2 and _stored share it",
    "_stored": "lineages in the application's own rows, keys and documents: an option",
    "_promises": "records of promises",
    "_events": "the lineage of an event that the store emits",
}
FURTHER = {
    ("mysql", "_functions"): "which functions are built in, a long table of the specification's",
    ("mysql", "django"): "public: Django finds an application by the name of its module",
    ("postgresql", "_functions"): "the same, of PostgreSQL",
    ("postgresql", "_catalogue"): "what names in a statement mean: every client asks it",
    ("postgresql", "_hidden"): "where words of a text are: statements and stored lineages share it",
    ("postgresql", "_elsewhere"): "what is written in other sessions: foreign tables, dblink",
    ("postgresql", "django"): "public, as MySQL's",
    ("embedded", "_topology"): "two regions: there is no server that a package of tests starts",
    ("embedded", "_store"): "there is no server: the database and its replicator are ours",
    ("rabbitmq", "_consumers"): "messages are pushed: waiting happens in a consumer, not in a read",
}
WITHOUT_ENDPOINT = {
    "embedded": "there is no server",
    "sns": "nobody can wait for its messages",
}
STORES = sorted(path.parent.name for path in SHIMS.glob("[!_]*/__init__.py"))


def rooms_of(store: str) -> dict[str, Path]:
    """The private modules and packages of a shim; a program for its command line is no room."""
    found = [*(SHIMS / store).glob("*.py"), *(path.parent for path in packages_of(store))]
    return {path.stem: path for path in found if not path.stem.startswith("__")}


def packages_of(store: str) -> list[Path]:
    """The `__init__.py` of each room that is a package."""
    return sorted((SHIMS / store).glob("*/__init__.py"))


@pytest.mark.parametrize("store", STORES)
def test_a_shim_has_the_rooms_of_every_shim(store: str) -> None:
    """A shim's modules are rooms of the table, or of the short list of further ones."""
    further = {room for of, room in FURTHER if of == store}
    assert further <= set(rooms_of(store))
    assert set(rooms_of(store)) - further <= set(ROOMS)


@pytest.mark.parametrize("store", STORES)
def test_a_room_is_flat_and_imports_nothing_by_itself(store: str) -> None:
    """A room of several modules has no rooms inside, and its `__init__.py` is one docstring."""
    for path in packages_of(store):
        assert not list(path.parent.glob("*/__init__.py"))
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""')
        assert text.endswith('"""\n')
        assert text.count("\n") == 1


@pytest.mark.parametrize("store", STORES)
def test_no_circles(store: str) -> None:
    """No modules of a shim import each other, for types alone, late or by others."""
    folder = SHIMS / store
    circular = [
        f"{path.relative_to(folder)} imports itself"
        for path in sorted(folder.rglob("*.py"))
        if path in reached(path, folder)
    ]
    assert not circular


@pytest.mark.parametrize("store", STORES)
def test_a_shim_has_what_every_shim_needs(store: str) -> None:
    """Each shim at least has Table 2's API, and those that wait at a server an endpoint."""
    assert "_shim" in rooms_of(store)
    assert "_endpoint" in rooms_of(store) or store in WITHOUT_ENDPOINT


@pytest.mark.parametrize("store", [store for store in STORES if "_stored" in rooms_of(store)])
def test_stored_lineages_are_imported_for_their_option_alone(store: str) -> None:
    """No module of a shim imports `_stored` with it, so that plain clients never run its code."""
    folder = SHIMS / store
    within = [path.relative_to(SHIMS).with_suffix("") for path in sorted(folder.rglob("*.py"))]
    within = [path for path in within if "_stored" not in path.parts and path.stem != "__main__"]
    names = [".".join(("antipode_shims", *path.parts)) for path in within]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}:\n"
        "    importlib.import_module(name.removesuffix('.__init__'))\n"
        "print([name for name in sys.modules if '._stored' in name])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
