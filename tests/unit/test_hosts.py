"""Which hosts ``egress_hosts`` lets lineages go to, however they are spelled."""

from __future__ import annotations

import pytest

import antipode
from antipode._runtime import config as _config
from antipode._runtime.egress_hosts import is_internal, names
from antipode._runtime.peers import expected
from antipode.integrations._outgoing import may_leave_to

YES = [
    ("posts.internal", "posts.internal", None),
    ("posts.internal", "POSTS.Internal", 80),
    ("Posts.Internal.", "posts.internal", 80),
    ("posts.internal", "posts.internal.", 80),
    ("posts.internal", "posts.internal:8080", None),
    ("posts.internal:8080", "posts.internal", 8080),
    ("posts.internal:8080", "posts.internal:8080", None),
    ("*.internal", "posts.internal", 80),
    ("*.internal", "eu.posts.internal", 80),
    ("*.Internal.:8080", "posts.internal", 8080),
    ("10.1.2.3", "10.1.2.3", 80),
    ("10.1.2.3:80", "10.1.2.3", 80),
    ("::1", "::1", 80),
    ("[::1]", "::1", None),
    ("::1", "[::1]:8080", None),
    ("[::1]:8080", "::1", 8080),
    ("2001:DB8:0:0::1", "2001:db8::1", 80),
    ("bücher.example", "xn--bcher-kva.example", 80),
    ("xn--bcher-kva.example", "BÜCHER.example", 80),
    ("*.bücher.example", "eu.xn--bcher-kva.example", 80),
    ("orders", "orders", 80),
    ("my_service", "my_service", 80),
]
NO = [
    ("posts.internal", "posts.internal.evil.example", 80),
    ("posts.internal", "notposts.internal", 80),
    ("posts.internal", "eu.posts.internal", 80),
    ("posts.internal", "", None),
    ("posts.internal:8080", "posts.internal", 80),
    ("posts.internal:8080", "posts.internal", None),
    ("*.internal", "internal", 80),
    ("*.internal", ".internal.evil.example", 80),
    ("*.internal", "postsinternal", 80),
    ("*.internal:8080", "posts.internal", 80),
    ("10.1.2.3", "10.1.2.30", 80),
    ("::1", "::2", 80),
    ("::1", "127.0.0.1", 80),
    ("bücher.example", "bucher.example", 80),
    ("posts.internal", "\udc80", 80),
]


@pytest.mark.parametrize(("entry", "host", "port"), YES)
def test_a_host_is_named(entry: str, host: str, port: int | None) -> None:
    """In any case, with a dot at the end, by an address in any spelling, by its port."""
    assert names(frozenset({"other.example", entry}), host, port)


@pytest.mark.parametrize(("entry", "host", "port"), NO)
def test_another_host_is_not(entry: str, host: str, port: int | None) -> None:
    """What looks alike, is above a domain, or answers at another port."""
    assert not names(frozenset({entry}), host, port)


def test_none_lets_lineages_go_everywhere_and_no_name_nowhere() -> None:
    """The default, and the strictest setting."""
    assert may_leave_to("anywhere.example")
    antipode.configure(egress_hosts=[])
    assert not may_leave_to("anywhere.example")
    assert not may_leave_to("")


@pytest.mark.parametrize(
    "entry",
    [
        "http://posts.internal",
        "posts.internal/v1",
        "*",
        "*.",
        "",
        "posts.*",
        "posts.internal:",
        "posts.internal:http",
        "posts.internal:99999",
        "[::1",
        "[::1]x",
        "a b",
        "user@posts",
        ".",
    ],
)
def test_what_names_no_host_is_refused(entry: str) -> None:
    """It would match nothing, and the lineage would go missing there without a word."""
    with pytest.raises(antipode.ConfigurationError, match="ANTIPODE_EGRESS_HOSTS"):
        antipode.configure(egress_hosts=[entry])


def test_the_environment_is_held_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first use."""
    monkeypatch.setenv("ANTIPODE_EGRESS_HOSTS", "posts.internal, https://users.internal")
    _config.reset_config()
    with pytest.raises(antipode.ConfigurationError, match="https://users"):
        antipode.shim.config()


PEERS = {
    "gateway.internal": "auto",
    "gateway.internal/orders": "always",
    "gateway.internal/orders/old/": "never",
    "gateway.internal:8080/orders": "auto",
    "*.internal": "never",
    "*.eu.internal/static": "always",
}


@pytest.mark.parametrize(
    ("host", "port", "path", "found"),
    [
        ("gateway.internal", 80, "/", ("auto", "")),
        ("gateway.internal", 80, "/ordersx", ("auto", "")),
        ("Gateway.Internal.", 80, "/orders", ("always", "/orders")),
        ("gateway.internal", 80, "/orders/1", ("always", "/orders")),
        ("gateway.internal", 80, "/orders/old/1", ("never", "/orders/old")),
        ("gateway.internal", 8080, "/orders/old/1", ("auto", "/orders")),
        ("gateway.internal:8080", None, "/orders", ("auto", "/orders")),
        ("users.internal", 80, "/", ("never", "")),
        ("users.eu.internal", 80, "/static/a.css", ("always", "/static")),
        ("users.eu.internal", 80, "/a.css", ("never", "")),
        ("elsewhere.example", 80, "/", ("auto", "")),
    ],
)
def test_the_most_exact_peer_counts(
    host: str, port: int | None, path: str, found: tuple[str, str]
) -> None:
    """The host first, then the path; a path covers what is below it, and no longer names."""
    antipode.configure(peers=PEERS)  # type: ignore[arg-type]
    assert expected(antipode.shim.config().peers, host, port, path) == found


@pytest.mark.parametrize(
    "host", ["orders", "orders.svc", "Posts.Internal.", "10.1.2.3", "[::1]:80"]
)
def test_names_that_nobody_else_owns(host: str) -> None:
    """Of this machine or network, by what its name or address is."""
    assert is_internal(host)


@pytest.mark.parametrize("host", ["api.example.com", "93.184.216.34", "2606:2800:220:1::1"])
def test_names_that_somebody_may_own(host: str) -> None:
    """A domain, or an address of the internet."""
    assert not is_internal(host)
