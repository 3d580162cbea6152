"""What a program shows of a process, a lineage and a dry run, such as ``antipode`` and its plugin.

Names here follow the library's inside more closely than those of an application or a shim.
"""

from __future__ import annotations

from ._barrier.registry import follows, holds_any, looking_shim, registered
from ._barrier.store import Store
from ._dry_run.notes import guard_of, request_of
from ._lineage.codec import may_be_dependency
from ._lineage.grammar import foreign_of
from ._request.context import context_with
from ._runtime import observers
from ._runtime.adoption import AROUND
from ._runtime.config import exchange_config
from ._runtime.datastores import clients_without_names, described, entry_of
from ._runtime.process_wide import noting_clients
from ._runtime.ruled import applied, rules_in_force, unmatched_rules
from ._runtime.switch import VARIABLE as DISABLED_VARIABLE
from ._runtime.switch import is_disabled
from ._runtime.unnamed import url_of
from ._setup.wanted import is_set_up, skipped

__all__ = [
    "AROUND",
    "DISABLED_VARIABLE",
    "Store",
    "applied",
    "clients_without_names",
    "context_with",
    "described",
    "entry_of",
    "exchange_config",
    "follows",
    "foreign_of",
    "guard_of",
    "holds_any",
    "is_disabled",
    "is_set_up",
    "looking_shim",
    "may_be_dependency",
    "noting_clients",
    "registered",
    "request_of",
    "rules_in_force",
    "rules_without_clients",
    "settle",
    "skipped",
    "unmatched_rules",
    "url_of",
]


def rules_without_clients() -> list[str]:
    """The entries of rules in force by which no client was instrumented yet, sorted."""
    return sorted(
        f"{each.datastore}={url_of(each.store, each.places[0], each.database)}"
        for each in unmatched_rules()
    )


def settle(timeout_s: float) -> None:
    """Wait until each read that is over was checked once, where this process is in a dry run.

    Args:
        timeout_s: seconds after which to go on anyway.
    """
    if observers.dry_run is not None:
        observers.dry_run.settle(timeout_s)


def __dir__() -> list[str]:
    return __all__
