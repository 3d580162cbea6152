"""From one request of a user to the next: a browser carries no baggage, but it keeps cookies.

    AntipodeMiddleware(app, session=Session(os.environ["SESSION_KEY"]))

The response says in a signed cookie what its request wrote, and for a minute the requests of that
browser depend on it. Django's middleware signs cookies itself: `antipode.integrations.django`.

An event to other users' browsers takes a token along, which their pages send back:

    await websocket.send_json({"changed": 7, "antipode": session.token()})
"""

from __future__ import annotations

import hashlib

from antipode import ConfigurationError

from ._session import EVENT_SALT, SALT, SessionCookie, Signer

try:
    import itsdangerous
except ModuleNotFoundError as error:
    _MESSAGE = f"{__name__} needs pip install 'antipode-xcy[session]'"
    raise ModuleNotFoundError(_MESSAGE) from error

__all__ = ["Session"]


def __dir__() -> list[str]:
    return __all__


_MIN_KEY = 16


class Session(SessionCookie):
    """A session cookie, and tokens, that itsdangerous signs: a middleware's ``session=``."""

    def __init__(
        self,
        key: str,
        *older: str,
        cookie: str = "antipode",
        path: str = "/",
        domain: str | None = None,
        secure: bool | None = None,
    ) -> None:
        """Name and sign it.

        Args:
            key: a secret that all servers of this service share, of at least 16 characters.
            older: keys that signed before and are still believed. To change the key, let all
                servers know the new one as an older one first, then sign with it, and drop the
                old one when the cookies that it signed are too old anyway.
            cookie: its name.
            path: below which browsers send it.
            domain: to whose subdomains browsers send it, too; None: to this host alone.
            secure: whether browsers send it over TLS alone. None: where the request came over
                TLS; say True where a proxy ends TLS and the server does not know of it.

        Raises:
            ConfigurationError: a key is too short, or a browser would not take the cookie.
        """
        signer, tokens = (signer_of(key, *older, salt=salt) for salt in (SALT, EVENT_SALT))
        super().__init__(signer, tokens, name=cookie, path=path, domain=domain, secure=secure)


def signer_of(key: str, *older: str, salt: str = SALT) -> Signer:
    """What signs with *key* for the use of *salt*, and believes *older* ones, too.

    Raises:
        ConfigurationError: a key is too short.
    """
    for each in (key, *older):
        if not isinstance(each, str) or len(each) < _MIN_KEY:
            msg = f"a key of a session is a secret of at least {_MIN_KEY} characters"
            raise ConfigurationError(msg)
    return _ItsDangerous([*reversed(older), key], salt)


class _ItsDangerous:
    """Signs with the last of some keys."""

    def __init__(self, keys: list[str], salt: str) -> None:
        self._signer = itsdangerous.Signer(
            keys, salt=salt, key_derivation="hmac", digest_method=hashlib.sha256
        )

    def sign(self, content: str) -> str:
        return self._signer.sign(content).decode("ascii")

    def unsign(self, value: str) -> str | None:
        try:
            return self._signer.unsign(value).decode("ascii")
        except (itsdangerous.BadSignature, UnicodeError):
            return None
