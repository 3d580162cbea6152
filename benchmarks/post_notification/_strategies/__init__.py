"""What an application can do so that readers do not read too early, each as its user writes it.

A strategy is a class that says how `Unprotected` is changed. Nothing of the library runs in any of
them but those of `OURS` and ``unguarded``.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._none import Unprotected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.post_notification._options import Strategy

_HERE = f"{__package__}."
_ABOVE = _HERE.rpartition("._")[0] + "."

_SERVERS = (
    *("redis", "mysql", "mariadb", "postgresql", "mongodb"),
    *("dynamodb", "s3", "seaweedfs"),
)
#: The classes of strategies that know nothing of the store.
_OF_ANY: dict[Strategy, str] = {
    "none": "_none:Unprotected",
    "barrier": "_barrier:Barrier",
    "artefact": "_artefact:Artefact",
    "sleep": "_sleep:Sleep",
    "retry": "_retry:Retry",
    "primary": "_primary:Primary",
    "sticky": "_sticky:Sticky",
    "unguarded": "_unguarded:Unguarded",
}
#: Of those that a store must offer something for, by the stores that do.
_OF_STORE: dict[Strategy, dict[str, str]] = {
    "instrumented": dict.fromkeys(_SERVERS, "_instrumented:Instrumented"),
    "at-read": dict.fromkeys(_SERVERS, "_at_read:AtRead"),
    "routed": dict.fromkeys(
        ("redis", "mysql", "mariadb", "postgresql", "mongodb"), "_routed:Routed"
    ),
    "auto": {**dict.fromkeys(_SERVERS, "_auto:Auto"), "embedded": "_auto:AutoShimmed"},
    "synchronous": {
        "redis": "_synchronous_redis:Synchronous",
        "mysql": "_synchronous_mysql:Synchronous",
        "mariadb": "_synchronous_mariadb:Synchronous",
        "postgresql": "_synchronous_postgresql:Synchronous",
        "mongodb": "_synchronous_mongodb:Synchronous",
    },
    "session": {
        "mysql": "_session_mysql:Session",
        "mariadb": "_session_mariadb:Session",
        "mongodb": "_session_mongodb:Session",
    },
}


def stores_of(strategy: Strategy, stores: Iterable[str]) -> tuple[str, ...]:
    """Those of *stores* that a strategy exists for."""
    return tuple(each for each in stores if strategy in _OF_ANY or each in _OF_STORE[strategy])


def strategy_class(strategy: Strategy, store: str) -> type[Unprotected]:
    """The class of a strategy for a store that it exists for."""
    place = _OF_ANY.get(strategy) or _OF_STORE[strategy][store]
    found: type[Unprotected] = _load(_HERE + place)
    return found


def lines_of(strategy: Strategy, store: str, notifier: str) -> int:
    """How many lines of code a strategy adds to the application without protection.

    Counted are the lines of its classes that have code: no blank lines, comments, docstrings and
    imports. With the library these are the class with the call, the RPC layer's tracing, and the
    library's ends of the post storage and of the notifier. The servers' own set-up, which all have,
    is not counted; what a strategy changes of it, it has as statements in its class.
    """
    if strategy == "none":
        return 0
    chosen = strategy_class(strategy, store)
    classes: list[Any] = [
        each for each in chosen.__mro__[:-1] if each.__module__ != Unprotected.__module__
    ]
    face = chosen.face
    if face != "plain":
        module = f"{_ABOVE}_notifier_{notifier}"
        classes += [
            _load(f"{_ABOVE}_tracing:LineageTracing"),
            _load(f"{_ABOVE}_storage:client_class")(store, face),
            *(_load(f"{module}:Shimmed{end}") for end in ("Publisher", "Subscriber")),
        ]
    return sum(count_lines(inspect.getsource(each)) for each in classes)


def count_lines(source: str) -> int:
    """The lines of *source* that have code: not blank, comment, docstring or import."""
    source = textwrap.dedent(source)
    silent: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom)):
            said_nothing = not isinstance(node, ast.Expr) or isinstance(node.value, ast.Constant)
            if said_nothing:
                silent.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    said: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in nothing and token.string:
            said.update(range(token.start[0], token.end[0] + 1))
    return len(said - silent)


def _load(place: str) -> Any:  # noqa: ANN401 - classes and functions of several modules
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
