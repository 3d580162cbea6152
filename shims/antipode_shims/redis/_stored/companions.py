"""What is added to commands so that lineages are stored with the values of named keys. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antipode import Lineage, current
from antipode.shim import (
    config,
    count,
    lineage_not_read,
    lineage_not_stored,
    stored_text,
    unreadable,
)
from antipode_shims.redis._commands import Kind, kind_of, name_of
from antipode_shims.redis._format import Match, Shown, digest, pack, unpack

from .glob import any_of
from .keys import SHOWING, Mode, Target, blocks, keys_of, targets_of, upper, words_of
from .script import SCRIPT, SHA

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antipode_shims.redis._commands import Command

    Encode = Callable[[Any], Any]

#: Replies that say that there was nothing.
_NOTHING: tuple[Any, ...] = (None, 0, -2, b"none", b"", [], {}, set())
#: Writes that replace a string whole, and where in them the value and the expiry are.
_SETTING = {"SETEX": "EX", "PSETEX": "PX"}
_LASTING = frozenset({"EX", "PX"})


@dataclass(frozen=True, slots=True)
class Part:
    """One command with what goes before and after it.

    Attributes:
        command: the application's.
        before: commands before it.
        behind: commands after it.
        shows: the named keys whose companions the reply after it gives, one reply each for a
            write and one for all for a read.
        reads: whether it reads: the reply after it is that of one ``MGET``.
        atomic: whether it may be wrapped in a transaction.
    """

    command: Sequence[Any]
    before: list[Command] = field(default_factory=list)
    behind: list[Command] = field(default_factory=list)
    shows: tuple[Any, ...] = ()
    reads: bool = False
    atomic: bool = True


class Companions:
    """What one client stores and reads with the values of the keys that *patterns* name."""

    def __init__(
        self, datastore: str, patterns: Sequence[str], *, prefix: str, reading: bool
    ) -> None:
        """Adopt the options.

        Args:
            datastore: for counts.
            patterns: Redis's own glob patterns.
            prefix: of companion keys, which are never named themselves.
            reading: whether reads merge what they find.
        """
        self.datastore = datastore
        self.reading = reading
        self._prefix = prefix.encode()
        self._named = any_of(patterns)

    def concerns(self, args: Sequence[Any]) -> bool:
        """Whether something is to be added to a command of the application."""
        kind = kind_of(args)
        if kind is Kind.WRITE:
            return any(map(self._names, keys_of(args)))
        if kind is Kind.READ or kind is Kind.AWAITING:
            return self.reading and (not (keys := keys_of(args)) or any(map(self._names, keys)))
        return False

    def part(self, args: Sequence[Any], encode: Encode, *, alone: bool) -> Part:
        """*args* with what is to be added.

        Args:
            args: a command that :meth:`concerns` is true of.
            encode: as the connection encodes.
            alone: whether it is in no transaction of the application's, nor between ``WATCH`` and
                ``MULTI``: whether it may wait, and be wrapped.
        """
        if kind_of(args) is Kind.WRITE:
            return self._write(args, encode, alone=alone)
        keys = [key for key in map(_bytes(encode), keys_of(args)) if self._names(key)]
        if not keys:
            lineage_not_read(self.datastore, name_of(args))
            return Part(args, reads=True, atomic=False)
        behind: list[Command] = [("MGET", *map(self._companion, keys))]
        atomic = alone and kind_of(args) is not Kind.AWAITING
        return Part(args, [], behind, tuple(keys), reads=True, atomic=atomic)

    def missed(self, args: Sequence[Any]) -> None:
        """Count a command that nothing can be added to."""
        if kind_of(args) is Kind.OTHER:
            if any(map(self._names, args[1:])):
                lineage_not_stored(self.datastore, name_of(args))
        elif not self.concerns(args):
            return
        elif kind_of(args) is Kind.WRITE:
            lineage_not_stored(self.datastore, name_of(args))
        else:
            lineage_not_read(self.datastore, name_of(args))

    def found(self, part: Part, reply: Any, companions: Sequence[Any], encode: Encode) -> Lineage:
        """What a reply shows to depend on, from the companions read at the same moment."""
        if not self.reading or not part.shows or isinstance(reply, Exception):
            return Lineage()
        lineages: list[Lineage] = []
        for key, companion in zip(part.shows, companions, strict=False):
            value = _shown(part, key, reply, encode)
            if isinstance(companion, Exception):
                lineages.append(unreadable(self.datastore, "companion"))
                continue
            held = companion.encode() if isinstance(companion, str) else companion
            lineage, match = unpack(value, held, self.datastore)
            if match is not Match.OWN:
                count(match.value, self.datastore)
            lineages.append(lineage)
        return Lineage().merge(*lineages)

    def _names(self, key: Any) -> bool:
        raw = bytes(key) if isinstance(key, (bytes, bytearray, memoryview)) else _utf8(key)
        return not raw.startswith(self._prefix) and self._named.fullmatch(raw) is not None

    def _companion(self, key: bytes) -> bytes:
        return self._prefix + key

    def _write(self, args: Sequence[Any], encode: Encode, *, alone: bool) -> Part:
        text = stored_text(current())
        plain = self._plainly(args, text, encode)
        if plain is not None:
            return Part(args, behind=plain, atomic=alone)
        name = name_of(args)
        targets = [_equal(target, args, encode) for target in targets_of(args)]
        named = [each for each in targets if self._names(_bytes(encode)(each[0].key))]
        behind = [self._script(target, text, encode, value) for target, value in named]
        if not behind:
            return Part(args)
        shows = tuple(_bytes(encode)(target.key) for target, _ in named)
        showing = name in SHOWING or (name == "SET" and len(args) > 3)  # noqa: PLR2004 - options
        if alone and blocks(name, words_of(args)):
            # Its lineage comes before it: whoever sees what it did has that, too.
            return Part(args, list(behind), behind, shows if showing else (), atomic=False)
        return Part(args, [], behind, shows if showing else (), atomic=alone)

    def _plainly(self, args: Sequence[Any], text: str, encode: Encode) -> list[Command] | None:
        """What to add to a full replace that cannot fail alone, whose value is known here."""
        words, name = args, name_of(args)
        pairs: list[tuple[Any, Any]]
        lasting: Sequence[Any] = ()
        if name == "SET" and len(words) in (3, 5):
            lasting = words[3:]
            if lasting and upper(lasting[0]) not in _LASTING:
                return None
            pairs = [(words[1], words[2])]
        elif name in _SETTING and len(words) == 4:  # noqa: PLR2004 - key, expiry, value
            lasting = (_SETTING[name], words[2])
            pairs = [(words[1], words[3])]
        elif name == "MSET" and len(words) % 2:
            pairs = list(zip(words[1::2], words[2::2], strict=True))
        else:
            return None
        values = {_bytes(encode)(key): bytes(encode(value)) for key, value in pairs}
        return [
            ("SET", self._companion(key), pack(value, text), *lasting)
            for key, value in values.items()
            if self._names(key)
        ]

    def _script(self, target: Target, text: str, encode: Encode, value: str) -> Command:
        raw = _bytes(encode)
        key = raw(target.key)
        keys = [key, self._companion(key)]
        keys += [self._companion(each) for each in map(raw, target.sources) if self._names(each)]
        mode = target.mode
        if mode is Mode.FROM and len(keys) == 2:  # noqa: PLR2004 - the source is not named
            mode = Mode.MERGE
        horizon_ms = int(config().horizon.total_seconds() * 1000)
        most = config().max_lineage_bytes
        return ("EVAL", SCRIPT, len(keys), *keys, text, mode.value, horizon_ms, most, value)


def _utf8(key: Any) -> bytes:
    return str(key).encode("utf-8", "surrogateescape")


def again(command: Command) -> Command:
    """A call of the script after another one in the same transaction."""
    return ("EVALSHA", SHA, *command[2:]) if command[0] == "EVAL" else command


def _equal(target: Target, args: Sequence[Any], encode: Encode) -> tuple[Target, str]:
    """*target*, and the digest of what is written to it where it is replaced by a known value."""
    if name_of(args) == "SET":
        options = list(map(upper, args[3:]))
        timed = options[:1] in (["EX"], ["PX"], ["EXAT"], ["PXAT"])
        if options in (["KEEPTTL"], ["GET"]) or (timed and options[2:] in ([], ["GET"])):
            target = Target(target.key, Mode.EQUAL)
    if target.mode is not Mode.EQUAL or len(args) < 3:  # noqa: PLR2004 - key and value
        return target, ""
    return target, digest(bytes(encode(args[2]))).decode()


def _bytes(encode: Encode) -> Callable[[Any], bytes]:
    return lambda key: bytes(encode(key))


def _shown(part: Part, key: bytes, reply: Any, encode: Encode) -> bytes | Shown | None:
    """What a reply, undecoded, shows of one key."""
    name = name_of(part.command)
    if part.reads and name == "GET":
        return reply if reply is None or isinstance(reply, bytes) else Shown.SOME
    if part.reads and name == "MGET" and isinstance(reply, list):
        raw = _bytes(encode)
        places = [raw(each) for each in part.command[1:]]
        value = reply[places.index(key)]
        return value if value is None or isinstance(value, bytes) else Shown.SOME
    if not part.reads or len(part.shows) > 1:
        return Shown.NONE
    empty = any(type(reply) is type(each) and reply == each for each in _NOTHING)
    return Shown.NONE if empty or reply is None else Shown.SOME
