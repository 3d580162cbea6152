"""Names of calls: their text, and how a nested call's name follows from its caller's. Pure.

The rules are in docs/spec/calls.md, with vectors that all languages share.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from ._errors import BadName

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The header in which a call's name travels, beside baggage.
HEADER = "antipode-call"
#: What clients send that know nothing of this library.
IDEMPOTENCY_KEY = "idempotency-key"
#: Characters of a name: of a key of 256 with what stands before it. Bytes of the whole header.
MAX_NAME = 264
MAX_HEADER = 512
#: Visible ASCII, without what separates parts of headers and of names.
_NAME = re.compile(r"[!#-+\--:<-\[\]-~]{1,264}")
_NAME_CHARACTERS = 32
_DIGEST_CHARACTERS = 22


def _hashed(parts: Iterable[bytes], characters: int) -> str:
    """The first characters of a digest that no other list of parts has."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return urlsafe_b64encode(hashed.digest()).decode("ascii")[:characters]


def digest_of(*parts: str | bytes) -> str:
    """The digest of the declared arguments of a call: 22 characters, 132 bits of SHA-256."""
    return _hashed(
        [part.encode() if isinstance(part, str) else part for part in parts], _DIGEST_CHARACTERS
    )


def checked(name: str) -> str:
    """*name*, which is one.

    Raises:
        BadName: it is empty, longer than 264 characters, or has some that headers cannot carry.
    """
    if not _NAME.fullmatch(name):
        shown = ascii(name[:40]) + ("..." if len(name) > 40 else "")  # noqa: PLR2004 - for a person
        msg = (
            f"{shown} is no name of a call: 1 to {MAX_NAME} visible ASCII characters, "
            "without comma, semicolon, quotation mark and backslash"
        )
        raise BadName(msg)
    return name


def identity(caller: str) -> str:
    """*caller* as it is stored: as it is where it is short and visible, else its digest."""
    if not caller or _NAME.fullmatch(caller):
        return caller
    return "sha256:" + _hashed([caller.encode()], _NAME_CHARACTERS)


def of_key(key: str) -> str:
    """The name of a request with the ``Idempotency-Key`` *key*, in quotation marks or not.

    Raises:
        BadName: it cannot be one.
    """
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    return checked(f"key:{key}") if key else checked(key)


def of_message(identifier: str) -> str:
    """The name of a message's handling, from the id that all its deliveries share.

    Raises:
        BadName: it cannot be one.
    """
    return checked(f"message:{identifier}")


def nested(parent: tuple[str, str], what: tuple[str, str, str], occurrence: int) -> str:
    """The name of a call that a handler makes.

    Args:
        parent: caller and name of the call that is handled.
        what: the service that is called, the method there, and the digest of the arguments.
        occurrence: 1 for the first such call, 2 for the one after its reply, and so on.
    """
    parts = (*parent, *what, str(occurrence))
    return "call:" + _hashed([part.encode() for part in parts], _NAME_CHARACTERS)


def explicit(parent: tuple[str, str], callee: str, method: str, name: str) -> str:
    """The name of a call to which a handler gives the name *name* itself."""
    parts = (*parent, callee, method, name)
    return "call:" + _hashed([part.encode() for part in parts], _NAME_CHARACTERS)


def decode(text: str) -> str:
    """The name in a value of the header. Parameters after a semicolon are for later versions.

    Raises:
        BadName: it is longer than 512 bytes, or no name.
    """
    if len(text) > MAX_HEADER:
        msg = f"the header {HEADER} has {len(text)} bytes: at most {MAX_HEADER}"
        raise BadName(msg)
    return checked(text.partition(";")[0].strip())
