"""Process-wide settings: ``configure()`` first, then ``ANTIPODE_<NAME>``, then the default."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, TypedDict, TypeVar, cast

from antipode._lineage.errors import ConfigurationError

from . import egress_hosts
from . import peers as _peers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import Unpack

    from .datastores import Datastores, Rule

Mode = Literal["enforce", "dry-run", "off"]
MODES = ("enforce", "dry-run", "off")
Policy = Literal["raise", "report"]
Barriers = Literal["explicit", "auto"]
BARRIERS = ("explicit", "auto")
OnStale = Literal["serve", "raise", "primary"]
#: A lineage of one mark, ``1~isize.-``, and its member name fit in this.
MIN_LINEAGE_BYTES = 64
#: Members over this size are dropped by SDKs, silently.
MAX_LINEAGE_BYTES = 4096


@dataclass(frozen=True)
class Config:
    """The settings in force; see :func:`configure` for what they mean."""

    mode: Mode = "enforce"
    region: str | None = None
    max_timeout: float = 30.0
    max_lineage_bytes: int = 1024
    horizon: timedelta = timedelta(days=7)
    max_promise: timedelta = timedelta(days=7)
    session_max_age: timedelta = timedelta(seconds=60)
    on_unknown: Policy | None = None
    on_incomplete: Policy = "raise"
    on_unscoped: Policy | None = None
    barriers: Barriers = "explicit"
    auto_timeout: float = 1.0
    on_stale: OnStale = "serve"
    egress: frozenset[str] | None = None
    egress_hosts: frozenset[str] | None = None
    peers: _peers.Peers = ()
    datastores: tuple[Rule, ...] = ()
    dry_run_dir: str | None = None
    history_dir: str | None = None
    app_packages: frozenset[str] | None = None


class Settings(TypedDict, total=False):
    """What :func:`configure` takes."""

    mode: Mode
    region: str | None
    max_timeout: float
    max_lineage_bytes: int
    horizon: timedelta
    max_promise: timedelta
    session_max_age: timedelta
    on_unknown: Policy | None
    on_incomplete: Policy
    on_unscoped: Policy | None
    barriers: Barriers
    auto_timeout: float
    on_stale: OnStale
    egress: Iterable[str] | None
    egress_hosts: Iterable[str] | None
    peers: Mapping[str, _peers.Answers]
    datastores: Datastores
    dry_run_dir: str | os.PathLike[str] | None
    history_dir: str | os.PathLike[str] | None
    app_packages: Iterable[str] | None


_Value = TypeVar("_Value")
#: Follows the settings: from those that were in force to those that are, None for none.
Listener: TypeAlias = "Callable[[Config | None, Config | None], None]"

_lock = threading.Lock()
_current: Config | None = None
_listeners: list[Listener] = []


def config() -> Config:
    """The settings in force; the environment is read at the first call."""
    found = _current
    return found if found is not None else _load()


def _load() -> Config:
    with _lock:
        if _current is None:
            return _take(_validated(_from_environment()))
        return _current


def _take(new: Config) -> Config:
    """Let *new* be in force; under the lock."""
    _change(new)
    return new


def _change(new: Config | None) -> None:
    """Let *new* be in force, or none until the environment is read again; under the lock."""
    global _current
    held, _current = _current, new
    for listener in _listeners:
        listener(held, new)


def on_change(listener: Listener) -> None:
    """Let *listener* follow the settings from now on.

    It is called with those that were in force and those that are, None for none, by whoever
    changes them or asks for them first: under the lock, so that it must not change them itself.
    """
    _listeners.append(listener)


def configure(**settings: Unpack[Settings]) -> None:
    """Change settings of this process; what is not given stays as it is.

    Every setting can also be given as ``ANTIPODE_<NAME>``, for example
    ``ANTIPODE_MAX_TIMEOUT=5`` or ``ANTIPODE_EGRESS=posts,users``.

    Keyword Args:
        mode (Mode): ``enforce``; ``dry-run``: nothing waits or raises, and where a barrier is
            missing is counted, logged and written down; or ``off``: barriers return at once, and
            everything else goes on: clients stay instrumented, and lineages are kept and sent.
            ``ANTIPODE_DISABLED=true`` in the environment turns all of it off.
        region (str | None): the name of this region, for people and reports; a dry run also goes by
            it.
        max_timeout (float): the longest any barrier waits, in seconds, whatever its caller says.
        max_lineage_bytes (int): most bytes of the baggage member, ``antipode=`` included (64 to
            4096).
        horizon (timedelta): a dependency on an unknown log older than this counts as ``aged`` and
            passes; ``7d``, ``12h`` or seconds in the environment.
        max_promise (timedelta): the longest that a promise may live, from when it is made or
            received.
        session_max_age (timedelta): for how long a user's requests depend on what an earlier one
            wrote, where a session cookie carries it: longer than replication ever lags.
        on_unknown (Policy | None): what a barrier does about ``unknown_store``, ``unknown_log`` and
            ``undecidable``: ``raise``, or ``report`` and go on; None: all raise, but a datastore
            that this process has no shim for, which is reported as :func:`barrier` says.
        on_incomplete (Policy): what a barrier does about an incomplete lineage: ``raise`` or
            ``report``.
        on_unscoped (Policy | None): what a write, or a barrier without a lineage, does without a
            scope: ``report`` (count it and log once a call site) or ``raise``; None: writes report,
            and barriers and checks raise.
        barriers (Barriers): ``explicit``: reads wait where :func:`barrier` was called; ``auto``:
            every read of an instrumented client waits for what its request depends on there.
        auto_timeout (float): how long automatic barriers may hold the reads of one request back, in
            seconds, for all of them together, at most ``max_timeout``; 0: never.
        on_stale (OnStale): what such a read does whose time is up, or of which waiting makes no
            sense: ``serve`` what there is, and count it, ``raise`` as a barrier does, or be made at
            the ``primary``, where its client has one, and else raise.
        egress (Iterable[str] | None): the datastores whose entries may leave this process, in
            whatever way; None for all.
        egress_hosts (Iterable[str] | None): the hosts that instrumented clients send lineages to,
            and whose answers they take: names or addresses, or ``*.`` and a domain for all names
            below it, each with ``:`` and a port where it is of that port alone; None for all.
        peers (Mapping[str, Answers]): whether those whom instrumented clients call answer with
            lineages: hosts as above, each with the path below which it holds or without, and
            ``always``, ``never`` or ``auto``, learnt from answers: ``orders.internal/v1=always``.
        datastores (Datastores): the datastore at each address, whose clients :func:`setup` and
            the stores' ``instrument()`` instrument: names with URLs, ``?reads_from=replica`` at
            those of replicas. ``posts=mysql://db:3306, feed=redis://cache:6379/0`` as variable.
        dry_run_dir (str | PathLike[str] | None): the directory into which a dry run writes its
            records, a file for each process; made where it is missing. None: it writes none.
        history_dir (str | PathLike[str] | None): the same for what Table 2 shims write and read,
            for ``antipode check``. None: nothing is recorded.
        app_packages (Iterable[str] | None): packages, or modules, that are the application's,
            whose lines logs and dry runs name. None: as the frameworks' handlers show.

    Raises:
        ConfigurationError: a value is outside what its setting takes.
        TypeError: there is no such setting.
    """
    _configured({**settings})


def _configured(given: dict[str, object]) -> None:
    if unknown := given.keys() - Settings.__annotations__.keys():
        msg = f"configure() has no setting {', '.join(sorted(unknown))}"
        raise TypeError(msg)
    with _lock:
        base = _current if _current is not None else _from_environment()
        for name, take in _TAKEN.items():
            if given.get(name) is not None:
                given[name] = take(name, given[name])
        new = replace(base, **given)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        _take(_validated(new))


def reset_config() -> None:
    """Forget what was configured; the environment is read again. For tests."""
    exchange_config(None)


def exchange_config(new: Config | None) -> Config | None:
    """Let *new* be in force, or None as in a new process, and return what was. For tests."""
    with _lock:
        held = _current
        _change(new)
        return held


def _validated(new: Config) -> Config:
    _one_of("mode", new.mode, MODES)
    _one_of("on_incomplete", new.on_incomplete, ("raise", "report"))
    _one_of("barriers", new.barriers, BARRIERS)
    _one_of("on_stale", new.on_stale, ("serve", "raise", "primary"))
    for name in ("on_unknown", "on_unscoped"):
        if getattr(new, name) is not None:
            _one_of(name, getattr(new, name), ("raise", "report"))
    timeout, size = _untyped(new, "max_timeout", "max_lineage_bytes")
    if not isinstance(timeout, (int, float)) or not 0 < timeout < float("inf"):
        _refuse("max_timeout", timeout, "a positive number of seconds")
    if not isinstance(size, int) or not MIN_LINEAGE_BYTES <= size <= MAX_LINEAGE_BYTES:
        bounds = f"{MIN_LINEAGE_BYTES} to {MAX_LINEAGE_BYTES}"
        _refuse("max_lineage_bytes", size, f"a number of bytes from {bounds}")
    (budget,) = _untyped(new, "auto_timeout")
    if not isinstance(budget, (int, float)) or not 0 <= budget < float("inf"):
        _refuse("auto_timeout", budget, "a number of seconds, 0 or more")
    for name in ("horizon", "max_promise", "session_max_age"):
        (span,) = _untyped(new, name)
        if not isinstance(span, timedelta) or span <= timedelta(0):
            _refuse(name, span, "a positive timedelta")
    _validate_hosts(new)
    for name in ("dry_run_dir", "history_dir"):
        (directory,) = _untyped(new, name)
        if directory is not None and not (isinstance(directory, str) and directory):
            _refuse(name, directory, "the path of a directory")
    return new


def _validate_hosts(new: Config) -> None:
    for host in new.egress_hosts or ():
        if not isinstance(host, str) or egress_hosts.refused(host):
            _refuse("egress_hosts", host, "of names or addresses of hosts, without scheme or path")
    for entry, answers in new.peers:
        _one_of("peers", answers, _peers.ANSWERS)
        if not isinstance(entry, str) or _peers.refused(entry):
            _refuse("peers", entry, "of hosts, without scheme, each with a path or without")


def _untyped(new: Config, *names: str) -> list[object]:
    """Settings as they are at run time, whatever the annotations promise."""
    return [getattr(new, name) for name in names]


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        _refuse(name, value, " or ".join(map(repr, allowed)))


def _refuse(name: str, value: object, wanted: str) -> NoReturn:
    msg = f"{name} must be {wanted}, not {value!r} (configure({name}=...) or {_variable(name)})"
    raise ConfigurationError(msg)


def _variable(name: str) -> str:
    return f"ANTIPODE_{name.upper()}"


def _from_environment() -> Config:
    readers: dict[str, Callable[[str, str], object]] = {
        "max_timeout": _read_number(float),
        "auto_timeout": _read_number(float),
        "max_lineage_bytes": _read_number(int),
        "horizon": _read_span,
        "max_promise": _read_span,
        "session_max_age": _read_span,
        "egress": _read_names,
        "egress_hosts": _read_names,
        "app_packages": _read_names,
        "peers": _read_peers,
        "datastores": _read_datastores,
    }
    given: dict[str, object] = {}
    for setting in fields(Config):
        text = os.environ.get(_variable(setting.name), "").strip()
        if text:
            reader = readers.get(setting.name)
            given[setting.name] = reader(setting.name, text) if reader else text
    return Config(**given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def _take_names(name: str, value: object) -> frozenset[str]:
    if isinstance(value, str):
        _refuse(name, value, "an iterable of names")
    return frozenset(cast("Iterable[str]", value))


def _take_path(_: str, value: object) -> object:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _take_peers(name: str, value: object) -> object:
    if not isinstance(value, dict):
        _refuse(name, value, "a dict of hosts, with paths or without")
    return tuple(sorted(value.items(), key=str))


def _take_datastores(_: str, value: object) -> object:
    from .datastores import taken  # Few processes have any.

    return taken(cast("Datastores", value))


def _read_datastores(_: str, text: str) -> object:
    from .datastores import parsed

    return parsed(text)


#: How the values of arguments are held, where that is not as they are.
_TAKEN: dict[str, Callable[[str, object], object]] = {
    "egress": _take_names,
    "egress_hosts": _take_names,
    "app_packages": _take_names,
    "peers": _take_peers,
    "datastores": _take_datastores,
    "dry_run_dir": _take_path,
    "history_dir": _take_path,
}


def _read_names(_: str, text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.split(","))))


def _read_peers(name: str, text: str) -> object:
    found: dict[str, str] = {}
    for each in filter(None, map(str.strip, text.split(","))):
        entry, sign, answers = map(str.strip, each.rpartition("="))
        if not sign:
            msg = f"{_variable(name)} must be like orders.internal=always, not {each!r}"
            raise ConfigurationError(msg)
        found[entry] = answers
    return _take_peers(name, found)


def _read_number(kind: Callable[[str], _Value]) -> Callable[[str, str], _Value]:
    def read(name: str, text: str) -> _Value:
        try:
            return kind(text)
        except ValueError:
            msg = f"{_variable(name)} must be a number, not {text!r}"
            raise ConfigurationError(msg) from None

    return read


def _read_span(name: str, text: str) -> timedelta:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([dhs]?)", text)
    if match is None:
        msg = f"{_variable(name)} must be like 7d, 12h or 3600, not {text!r}"
        raise ConfigurationError(msg)
    unit_s = {"d": 86_400, "h": 3_600}.get(match[2], 1)
    return timedelta(seconds=float(match[1]) * unit_s)
