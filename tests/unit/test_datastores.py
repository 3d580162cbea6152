"""The setting ``datastores``: which URL is which address, and what is refused."""

from __future__ import annotations

import pytest

from antipode import ConfigurationError, configure
from antipode._runtime.config import config
from antipode._runtime.datastores import (
    PRECEDENCE,
    parsed,
    place_of,
    places_in,
    rule_for,
    sentinel_place,
    taken,
)
from tests._costs import ROOT


@pytest.mark.parametrize(
    ("url", "store", "places", "database"),
    [
        ("redis://Cache.:6379/0", "redis", [("cache", 6379)], "0"),
        ("rediss://user:secret@127.0.0.1", "redis", [("localhost", 6379)], None),
        ("redis://[::1]:7000", "redis", [("localhost", 7000)], None),
        ("unix:///run/redis.sock", "redis", [("/run/redis.sock", 0)], None),
        ("redis+sentinel://mymaster", "redis", [("sentinel mymaster", 0)], None),
        ("redis+sentinel://mymaster/1", "redis", [("sentinel mymaster", 0)], "1"),
        (
            "redis+sentinel://s1,s2:7000/mymaster/1",
            "redis",
            [("sentinel mymaster by s1", 26379), ("sentinel mymaster by s2", 7000)],
            "1",
        ),
        ("mysql://[2001:db8:0::0001]", "mysql", [("2001:db8::1", 3306)], None),
        ("mysql://[::ffff:10.0.0.1]", "mysql", [("10.0.0.1", 3306)], None),
        ("amqp://broker/%2F", "rabbitmq", [("broker", 5672)], "/"),
        ("mysql+pymysql://db/shop", "mysql", [("db", 3306)], "shop"),
        ("mysql://localhost?unix_socket=/run/m.sock", "mysql", [("/run/m.sock", 0)], None),
        ("mongodb://a,b:27018/", "mongodb", [("a", 27017), ("b", 27018)], None),
        ("mongodb+srv://set.example", "mongodb", [("set.example", 0)], None),
        ("postgresql+psycopg://u:secret@db/shop", "postgresql", [("db", 5432)], "shop"),
        ("postgres:///shop?host=/run/pg", "postgresql", [("/run/pg", 0)], "shop"),
        ("dynamodb://eu-west-1", "dynamodb", [("eu-west-1", 443)], None),
        ("s3://127.0.0.1:4566/", "s3", [("localhost", 4566)], None),
        ("sns://eu-west-1", "sns", [("eu-west-1", 443)], None),
        ("stomp://broker?receipts=true", "activemq", [("broker", 61613)], None),
        ("amqps://broker/%2Fvhost", "rabbitmq", [("broker", 5671)], "/vhost"),
        ("amqp://broker/", "rabbitmq", [("broker", 5672)], None),
        ("amqp://broker//", "rabbitmq", [("broker", 5672)], "/"),
        ("valkeys://cache", "redis", [("cache", 6379)], None),
        ("MySQL://user:p@secret@db/a%2Fb", "mysql", [("db", 3306)], "a/b"),
        ("redis://cache?one_server=false", "redis", [("cache", 6379)], None),
    ],
)
def test_urls(url: str, store: str, places: list[tuple[str, int]], database: str | None) -> None:
    """A URL gives a store, its addresses and, where it has one, a database; no password."""
    (rule,) = parsed(f"posts={url}")
    assert (rule.store, list(rule.places), rule.database) == (store, places, database)
    assert "secret" not in repr(rule)


def test_the_variable_and_the_argument_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commas within MongoDB's URLs end no entry; several URLs of one name are several rules."""
    text = "posts=mongodb://a,b, feed=redis://c/0,feed=redis://d/0?reads_from=replica"
    monkeypatch.setenv("ANTIPODE_DATASTORES", text)
    rules = config().datastores
    urls = {"posts": "mongodb://a,b", "feed": ["redis://c/0", "redis://d/0?reads_from=replica"]}
    assert rules == taken(urls) == taken(text)
    configure(datastores=urls)
    assert [rule.reads_from for rule in rules] == [None, None, "replica"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("posts mysql://db", "an entry is a name and a URL"),
        ("posts=db:3306", "an entry is a name|begins with one of"),
        ("posts=ftp://db", "begins with one of redis://"),
        ("posts=redis://user:secret@db:port", "is no host with a port"),
        ("posts=mysql://user:1/secret@db", "write / as %2F"),
        ("posts=mysql://user:a?secret@db", r"\? as %3F"),
        ("posts=mysql://user:a#secret@db", "# as %23"),
        ("posts=mysql://user:a secret@db", "an entry is a name and a URL"),
        ("posts=mysql://user:secret,x=redis://y", "is no host with a port"),
        ("posts=mysql://[user:secret@db", "one of IPv6"),
        ("posts=mongodb://a/app", "for all databases: take '/app' off"),
        ("posts=stomp://broker/news", "for all destinations: take '/news' off"),
        ("posts=redis://cache/posts", "databases of Redis have numbers"),
        ("posts=redis+sentinel://s1,s2", "name the service as well"),
        ("posts=mysql://db:0", "a port is 1 to 65535"),
        ("posts=mysql://db:65536", "a port is 1 to 65535"),
        ("posts=mongodb+srv://set.example:27017", "its URL takes no port"),
        ("posts=redis://a,b", "repeat the name for others"),
        ("posts=redis://a?read_from=replica", "takes reads_from, one_server, both after"),
        ("posts=redis://a?reads_from=near", "reads_from is primary or replica, not 'near'"),
        ("media=s3://eu-west-1/bucket", "of a region or of an endpoint, without a path"),
        ("news=sns://eu-west-1?reads_from=replica", "it takes nothing after"),
        ("@all=redis://a", "begins with no '@'"),
        ("a=redis://h/0, b=redis://h:6379/0", "redis at h:6379/0 has two names"),
        ("a=redis://h, a=redis://h?reads_from=replica", "named twice, with different options"),
        ("a=mysql://localhost, b=mysql://127.0.0.1", "mysql at localhost:3306 has two names"),
        ("a=mysql://[::1], b=mysql://127.0.0.1", "mysql at localhost:3306 has two names"),
        ("a=mongodb://x,y, b=mongodb://y,z", "mongodb at y:27017 has two names"),
        ("a=amqp://q/%2F, b=amqps://q:5672/%2F", "rabbitmq at q:5672// has two names"),
        ("a=redis://h?both=true, a=redis://h", "named twice, with different options"),
        ("a=redis://h?both=true&reads_from=replica", "take reads_from out"),
        ("-=redis://h, a=redis://h", "is a datastore and is none"),
        ("a=redis://::1:6379", r"stands in brackets, as in \[2001:db8::1\]:6379"),
        ("a=redis://[::1", "one of IPv6"),
        ("a=unix:///run/r.sock?db=1", "a rule of a socket is for all"),
        ("a=redis://h?db=2", "a database is a path, as in redis://cache/1"),
        ("a=redis://h/01", "databases of Redis have numbers"),
        ("a=redis://h/" + "9" * 40, "databases of Redis have numbers"),
        ("a=postgresql:///shop?host=db", "a host stands after '//'"),
        ("a=mysql:///shop?unix_socket=run/m.sock", "the path of a socket begins with '/'"),
        ("a=unix://", "its URL names no host"),
        ("a=redis://h?password=secret", "not 'password'"),
        ("a=postgresql://h/shop?sslpassword=secret", "not 'sslpassword'"),
        ("a='mysql://u:secret@h'", "begins with one of|a name and a URL"),
        ('{"a": "mysql://u:secret@h"}', "an entry is a name and a URL"),
        ("a=mysql:secret@h", "begins with one of|names no host|write"),
        ("u:secret@ss=redis://h", "an entry is a name and a URL"),
        ("a=mysql:/u:secret@h", "write / as %2F"),
        ("a=redis://user:secret@h/1/2", "databases of Redis have numbers"),
        ("a=postgresql://h1,h2/shop", "one host an entry"),
        ("a=postgresql://h/shop?sslmode=require", "not 'sslmode'"),
        ("a=mysql://h/shop?charset=utf8", "not 'charset'"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    """An error says which entry, why, and names no password."""
    with pytest.raises(ConfigurationError, match=why) as raised:
        parsed(text)
    assert "ANTIPODE_DATASTORES" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("between", ["\n", " ", ",\n  ", ", "])
def test_what_parts_entries(between: str) -> None:
    """Commas, blanks and lines, as environments spell a long variable."""
    text = f"a=redis://h{between}b=mongodb://x,y{between}b=redis://i"
    assert [rule.datastore for rule in parsed(text)] == ["a", "b", "b"]


def test_which_rule_is_for_a_client() -> None:
    """Any of its addresses counts, and a rule for its database goes before one for all."""
    rules = parsed("all=redis://h, own=redis://h/1, docs=mongodb://a,b")
    here = [place_of("h", 6379)]
    found = [rule_for(rules, "redis", here, database) for database in ("0", "1")]
    assert [rule and rule.datastore for rule in found] == ["all", "own"]
    assert rule_for(rules, "mysql", here, "0") is None
    docs = rule_for(rules, "mongodb", places_in("mongodb://user@c,b/app"), None)
    assert docs is not None
    assert docs.datastore == "docs"


def test_the_order_of_names_is_documented() -> None:
    """The page of settings has the rows of the code's table, in its order."""
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    rows = [f"| {number} | {says} |" for number, says in enumerate(PRECEDENCE, 1)]
    assert "\n".join(rows) in page


def test_who_watches_a_service_goes_before_its_name() -> None:
    """Two deployments of Sentinel have one service name: a rule for one is not for the other."""
    rules = parsed("any=redis+sentinel://mymaster, own=redis+sentinel://s1,s2/mymaster")

    def named(*sentinels: str) -> str | None:
        watching = [sentinel_place("mymaster", each, 26379) for each in sentinels]
        places = [*watching, sentinel_place("mymaster")]
        rule = rule_for(rules, "redis", places, "0")
        return rule and rule.datastore

    assert (named("s2", "s3"), named("s4")) == ("own", "any")


@pytest.mark.parametrize(
    "text",
    [
        "," * 100_000 + "x",
        " " * 100_000 + "=",
        "a" * 100_000,
        "a=" * 50_000,
        "a=mysql://" + ":" * 100_000,
        "a=mysql://b/" + "@" * 100_000,
        "a=mysql://b?" + "z" * 100_000,
        "a=mysql://b/?both=" + "z" * 100_000,
        "a=mongodb://" + "h," * 50_000,
        " ,".join(f"a{number}=redis://h{number}" for number in range(5_000)),
    ],
    ids=lambda text: text[-12:].strip() or "blank",
)
def test_a_long_text_takes_linear_time(text: str) -> None:
    """100 kB are read, or refused with an error of a few lines, in 100,000 steps and not squared.

    The bound of a runner's test is what fails: quadratic time is minutes.
    """
    if "redis://" in text or "mongodb://" in text:
        assert parsed(text)
        return
    with pytest.raises(ConfigurationError) as raised:
        parsed(text)
    assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("a=redis://h, a=redis://h:6379, a=redis://H.", 1),
        ("a=redis://h/0, a=redis://h/1, a=redis://h", 3),
        ("a=mongodb://x,y, a=mongodb://x,y", 1),
        ("a=mysql://[fe80::1%25eth0]:3306, a=mysql://[2001:db8::1], a=mysql://[2001:db8:0::1]", 2),
        ("a=redis://h/0, b=redis://h/1", 2),
        ("a=redis://h, -=redis://h/1", 2),
        ("a=mysql://h/x, b=postgresql://h:3306/x", 2),
        ("a=postgresql:///shop?host=/run/pg, a=postgresql://db/shop", 2),
    ],
)
def test_what_repeats_or_overlaps(text: str, rules: int) -> None:
    """Entries that say the same count once; those of other databases or servers stand beside."""
    assert len(parsed(text)) == rules


def test_a_name_with_five_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is resolved: a client is matched by the name that it was given, or by none."""

    def resolve(*_: object, **__: object) -> None:
        raise AssertionError("a name was looked up")

    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        monkeypatch.setattr(f"socket.{name}", resolve)
    rules = parsed("cache=redis://cache.internal, cache=redis://10.0.0.1")
    named = rule_for(rules, "redis", [place_of("cache.internal", 6379)], "0")
    assert named is not None
    found = [
        rule_for(rules, "redis", [place_of(f"10.0.0.{number}", 6379)], "0")
        for number in range(1, 6)
    ]
    assert [each and each.datastore for each in found] == ["cache", None, None, None, None]
