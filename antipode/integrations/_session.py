"""What carries a lineage from one request of a user to the next: a cookie, and tokens of events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

from antipode import ConfigurationError, Lineage, LineageDecodeError
from antipode._propagation.session import (
    MAX_COOKIE_BYTES,
    MAX_COOKIES,
    Part,
    caching,
    content_of,
    living,
    parts_of,
    tokens_of,
    values_of,
    worth_carrying,
)
from antipode._runtime import switch
from antipode.shim import (
    SYSTEM_CLOCK,
    Clock,
    Scope,
    config,
    count,
    log_once,
    logger,
    scope_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: With this a signature is of a session cookie, whatever else its key signs.
SALT = "antipode.session"
#: The same of a session token: nobody can make a cookie of one.
EVENT_SALT = "antipode.session.token"
_MAX_NAME = 64
#: Of RFC 6265: what a name may have besides letters and digits.
_TOKEN = frozenset("!#$%&'*+-.^_`|~")


class Signer(Protocol):
    """Signs a cookie's content with one key, and knows what several signed."""

    def sign(self, content: str) -> str:
        """*content* with its signature."""
        ...

    def unsign(self, value: str) -> str | None:
        """The content of *value*; None where no key has signed it."""
        ...


class SessionChange(NamedTuple):
    """What a response does to the cookie.

    Attributes:
        value: signed; empty to remove it.
        max_age_s: for how long a browser keeps it.
        cache_control: what the response must say to caches.
    """

    value: str
    max_age_s: int
    cache_control: str


class SessionCookie:
    """How the cookie is named and signed, and where browsers send it."""

    def __init__(
        self,
        signer: Signer,
        tokens: Signer,
        *,
        name: str,
        path: str,
        domain: str | None,
        secure: bool | None,
    ) -> None:
        """Name it.

        Args:
            signer: signs it.
            tokens: signs tokens, with a salt of their own.
            name: of the cookie.
            path: below which browsers send it.
            domain: to whose subdomains they send it, too; None: to this host alone.
            secure: whether over TLS alone; None: where the request came over TLS.

        Raises:
            ConfigurationError: a browser would not take it.
        """
        if not 0 < len(name) <= _MAX_NAME or not all(
            (each.isascii() and each.isalnum()) or each in _TOKEN for each in name
        ):
            msg = f"a cookie's name is a token of at most {_MAX_NAME} characters, not {name!r}"
            raise ConfigurationError(msg)
        for what, text in ("path", path), ("domain", domain or ""):
            if not text.isascii() or not text.isprintable() or ";" in text:
                msg = f"the {what} of a cookie cannot be {text!r}"
                raise ConfigurationError(msg)
        self.name, self.path, self.domain, self.secure = name, path, domain, secure
        self._signer, self._tokens = signer, tokens
        self._room = MAX_COOKIE_BYTES - len(name) - len("=") - len(signer.sign(""))

    def begin(
        self,
        scope: Scope,
        headers: Iterable[str],
        *,
        tokens: Iterable[str] = (),
        secure: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> SessionRequest:
        """Let *scope* start from what the cookies and tokens of its request say as well.

        Args:
            scope: of the request.
            headers: the values of its Cookie headers.
            tokens: those of its antipode-session headers.
            secure: whether the request came over TLS.
            clock: what ages go by.
        """
        values = values_of(headers, self.name)
        cookies = _read("cookie", self._signer, values, clock)
        came = [*cookies, *_read("token", self._tokens, tokens_of(tokens), clock)]
        if came:
            scope.start_from(Lineage().merge(*(part.lineage for part in came)))
        return SessionRequest(self, scope, values, cookies, secure=secure, clock=clock)

    def write(self, parts: Iterable[Part]) -> str:
        """The signed value of a cookie that holds *parts*."""
        return self._signer.sign(content_of(parts, room=self._room, egress=config().egress))

    def token(self, *, clock: Clock = SYSTEM_CLOCK) -> str:
        """What the current request depends on by now, for an event to whoever's browser.

        The page that gets the event sends it in the header ``antipode-session`` of its next
        requests: those depend on it, for ``session_max_age``. It is signed, not hidden: ``egress``
        says which datastores may be named (docs/spec/sessions.md, "The token").

        Returns:
            At most 1,024 characters, without spaces and commas; empty where there is nothing to
            wait for. What is written later is not in it, nor what a transaction has written that is
            not committed yet: that is counted (``sent_before_commit``).
        """
        scope = None if switch.disabled else scope_in()
        if scope is None:
            return ""
        scope.leaves()
        now_s, settings = int(clock.unix_s()), config()
        known = worth_carrying(
            scope.lineage, now_s=now_s, max_age_s=settings.session_max_age.total_seconds()
        )
        room = MAX_COOKIE_BYTES - len(self._tokens.sign(""))
        content = content_of([Part(now_s, known)], room=room, egress=settings.egress)
        return self._tokens.sign(content) if content else ""


class SessionRequest:
    """One request of a user, from its cookies to its response."""

    __slots__ = ("_clock", "_parts", "_scope", "_values", "cookie", "secure")

    def __init__(
        self,
        cookie: SessionCookie,
        scope: Scope,
        values: Sequence[str],
        parts: Sequence[Part],
        *,
        secure: bool,
        clock: Clock,
    ) -> None:
        """Note the *values* of the cookies that came, and the living *parts* of them."""
        self.cookie, self._scope, self._clock = cookie, scope, clock
        #: Whether browsers send the cookie over TLS alone.
        self.secure = secure if cookie.secure is None else cookie.secure
        self._values, self._parts = values, parts

    def change(self, status: int, headers: Iterable[tuple[str, str]]) -> SessionChange | None:
        """What the response, which starts now, does to the cookie; None: nothing.

        Args:
            status: of the response.
            headers: all of its headers, their names in lower case.
        """
        try:
            return self._change(status, headers)
        except Exception:  # noqa: BLE001 - the response goes out
            logger.warning("a response goes without its session cookie", exc_info=True)
            return None

    def _change(self, status: int, headers: Iterable[tuple[str, str]]) -> SessionChange | None:
        max_age_s = config().session_max_age.total_seconds()
        now_s = int(self._clock.unix_s())
        added = worth_carrying(self._scope.added(), now_s=now_s, max_age_s=max_age_s)
        if added.empty and (self._parts or not self._values):
            return None
        cache_control = caching(status, headers)
        if cache_control is None:
            if not added.empty:
                count("session_unset")
                message = "a response that a shared cache may keep sets no session cookie: the "
                message += "next request of its user does not depend on what this one wrote"
                log_once("session_unset", "", "", message)
            return None
        if added.empty:
            return SessionChange("", 0, cache_control)
        value = self.cookie.write([*self._parts, Part(now_s, added)])
        return SessionChange(value, math.ceil(max_age_s), cache_control)

    def set_cookie(self, change: SessionChange) -> str:
        """The value of the ``Set-Cookie`` header for *change*."""
        cookie = self.cookie
        parts = [f"{cookie.name}={change.value}", f"Max-Age={change.max_age_s}"]
        parts.append(f"Path={cookie.path}")
        if cookie.domain:
            parts.append(f"Domain={cookie.domain}")
        if self.secure:
            parts.append("Secure")
        return "; ".join([*parts, "HttpOnly", "SameSite=Lax"])


def _read(what: str, signer: Signer, values: Sequence[str], clock: Clock) -> list[Part]:
    """What is left of cookies or tokens; the others are counted, and ignored."""
    parts: list[Part] = []
    for value in values[:MAX_COOKIES]:
        content = signer.unsign(value) if len(value) <= MAX_COOKIE_BYTES else None
        if content is None:
            _ignored("session_forged", what, "no key of this service has signed it")
            continue
        try:
            read = parts_of(content, clock)
        except LineageDecodeError as error:
            _ignored("session_unreadable", what, error.code)
            continue
        max_age_s = config().session_max_age.total_seconds()
        found = living(read, now_s=int(clock.unix_s()), max_age_s=max_age_s)
        if not found:
            count("session_old")
        parts += found
    if len(values) > MAX_COOKIES:
        _ignored("session_forged", what, f"it came with {MAX_COOKIES} others of its name")
    return parts


def _ignored(name: str, what: str, why: str) -> None:
    count(name)
    log_once(name, "", (what, why), "a session %s is ignored: %s", what, why)
