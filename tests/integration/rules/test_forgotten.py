"""A shop of three services with one line forgotten: who says so, and which line to add.

The shop (`_shop/`) is wired by ``antipode.setup()`` and ``ANTIPODE_DATASTORES`` alone: *api* takes
an order (FastAPI, SQLAlchemy, redis-py) and publishes a task, *worker* (Celery) reads the order and
the count and calls *web* (Flask, psycopg), which reads the order and writes an invoice.

| forgotten | told by | and by the dry run as |
|---|---|---|
| ``setup()`` at the publisher | doctor of api | message-without-lineage |
| ``setup()`` at the consumer | doctor of worker | unhandled-message |
| ``setup()`` at the called service | doctor of web | call-not-taken |
| ``setup()`` before the first request | doctor of web; a warning there | late-setup |
| the rules of one store, at its writer | doctor of api | unnamed-client |
| the rules of one store, at its reader | doctor of worker | unnamed-client |
| a digit of the port, at the writer | doctor of api; a warning there | unnamed-client |
| a digit of the port, at the reader | doctor of worker; a warning there | unnamed-client |
| how rules spell the host | a warning of web | unnamed-client |
| a consumer that is instrumented | doctor of worker | unhandled-message, unscoped-read |
| ``setup()`` under another command | doctor of worker | unhandled-message |
| the rule of the standby | a warning of web | unnamed-client |
| ``?reads_from=replica`` | a warning of web | undeclared-replica |
| the same name in all services | a warning of web | two-names |
| a publisher that is instrumented | doctor of api | message-without-lineage |
| the context in a pool of threads | doctor of worker; a warning there | unscoped-read |
| Flask, which ``skip`` has | doctor of web; a warning there | call-not-taken, unscoped-read |
| the GRANT at the standby | doctor of worker | unshowable |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.integration.rules._forgetting import SERVICES, Servers, Shop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from antipode_testing import PostgreSQLTopology, RabbitMQTopology, RedisTopology

for package in ("fastapi", "flask", "celery", "sqlalchemy", "psycopg", "redis", "requests"):
    pytest.importorskip(package)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.store("postgresql"),
    pytest.mark.store("redis"),
    pytest.mark.store("rabbitmq"),
]

SETUP = "antipode.setup()\n"
CALL = "call antipode.setup() there before all else"


@pytest.fixture(scope="module")
def servers(
    antipode_postgresql: PostgreSQLTopology,
    antipode_redis: RedisTopology,
    antipode_rabbitmq: RabbitMQTopology,
) -> Iterator[Servers]:
    """The stores of the shop, with its tables and an account without rights at the standby."""
    sql = antipode_postgresql
    sql.execute("CREATE TABLE orders (id SERIAL PRIMARY KEY, item TEXT)")
    sql.execute("CREATE TABLE invoices (id SERIAL PRIMARY KEY, ordered INT)")
    sql.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
    for kind in ("TABLES", "SEQUENCES"):
        sql.execute(f"GRANT ALL ON ALL {kind} IN SCHEMA public TO app, plain")
    yield Servers(sql, antipode_redis, antipode_rabbitmq)
    sql.execute("DROP TABLE orders, invoices")
    sql.execute("DROP OWNED BY plain")  # Its rights on tables of other tests, too.
    sql.execute("DROP ROLE plain")


def no_setup(service: str, shop: Shop) -> None:
    shop.edit(service, SETUP)


def skip(service: str, name: str, shop: Shop) -> None:
    shop.edit(service, SETUP, f"antipode.setup(skip=[{name!r}])\n")


def late(shop: Shop) -> None:
    no_setup("web", shop)
    shop.edit("web", "    number = int", f"    {SETUP}    number = int")


def other_command(shop: Shop) -> None:
    no_setup("worker", shop)
    main = 'if __name__ == "__main__":\n'
    shop.edit("worker", main, f"{main}    {SETUP}")


def without(service: str, names: tuple[str, ...], shop: Shop) -> None:
    for name in names:
        del shop.rules[service][name]


def write(service: str, name: str, part: str, by: str, shop: Shop) -> None:
    rules = shop.rules[service]
    assert part in rules[name]
    rules[name] = rules[name].replace(part, by)


def wrong_port(service: str, name: str, place: str, shop: Shop) -> None:
    host, _, rest = shop.servers.places[place].rpartition(":")
    port, _, database = rest.partition("/")
    wrong = f"{port[:-1]}{(int(port[-1]) + 1) % 10}"
    write(service, name, f"{{{place}}}", f"{host}:{wrong}/{database}", shop)


def other_host(shop: Shop) -> None:
    given = shop.variables["web"]
    for name in ("PRIMARY", "STANDBY"):
        given[name] = given[name].replace("127.0.0.1", "db.internal") + "?hostaddr=127.0.0.1"


def other_name(shop: Shop) -> None:
    for name in ("writer", "reader"):
        write("web", name, "shop=", "store=", shop)


def no_grant(shop: Shop) -> None:
    for service in ("worker", "web"):
        given = shop.variables[service]
        given.update({name: url.replace("app:app@", "plain:plain@") for name, url in given.items()})


@dataclass(frozen=True)
class Line:
    """A line that can be forgotten.

    Attributes:
        forget: changes the shop.
        dry_run: what its report says, in this order.
        doctor: the service whose doctor says it, and in which words.
        warned: the service that warns as it serves, and in which words.
    """

    forget: Callable[[Shop], None]
    dry_run: tuple[str, ...]
    doctor: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()


COUNTS = ("count", "near count")
NOT_SET_UP = ("nothing of the library is set up", "call antipode.setup() first in the module")
UNHANDLED = ("no recorded process handled such a message", CALL, "the task invoice")
UNLABELLED = ("handled a message without a lineage", CALL, "worker.py")
UNNAMED = "a client that no rule names"
WITHOUT = "rules without a client: shop=postgresql://localhost:"

LINES = {
    "setup-at-the-publisher": Line(partial(no_setup, "api"), UNLABELLED, ("api", *NOT_SET_UP)),
    "setup-at-the-consumer": Line(partial(no_setup, "worker"), UNHANDLED, ("worker", *NOT_SET_UP)),
    "setup-at-the-called-service": Line(
        partial(no_setup, "web"),
        ("called a service of which no recorded process took the call", CALL, "worker.py"),
        ("web", *NOT_SET_UP),
    ),
    "setup-too-late": Line(
        late,
        ("antipode.setup() was called while a request was handled", "call it first in the module"),
        ("web", *NOT_SET_UP),
        ("web", "setup() is called while flask.app handles a request", "Call it first in the mod"),
    ),
    "rule-at-the-writer": Line(
        partial(without, "api", COUNTS),
        (UNNAMED, "api.py", "add NAME={REDIS} to ANTIPODE_DATASTORES"),
        ("api", "clients that nothing instruments: redis", "add NAME={REDIS}"),
    ),
    "rule-at-the-reader": Line(
        partial(without, "worker", COUNTS),
        (UNNAMED, "worker.py", "add NAME={REDIS_REPLICA} to ANTIPODE_DATASTORES"),
        ("worker", "clients that nothing instruments: redis", "add NAME={REDIS_REPLICA}"),
    ),
    "port-at-the-writer": Line(
        partial(wrong_port, "api", "writer", "PRIMARY"),
        (UNNAMED, "api.py", "add NAME={PRIMARY} to ANTIPODE_DATASTORES", WITHOUT),
        ("api", "no client is there, and postgresql at", "correct the address in the rule"),
        ("api", "no rule names postgresql at", "Add NAME={PRIMARY} to ANTIPODE_DATASTORES"),
    ),
    "port-at-the-reader": Line(
        partial(wrong_port, "worker", "near count", "REDIS_REPLICA"),
        (UNNAMED, "worker.py", "add NAME={REDIS_REPLICA} to ANTIPODE_DATASTORES"),
        ("worker", "no client is there, and redis at", "correct the address in the rule"),
        ("worker", "no rule names redis at", "Add NAME={REDIS_REPLICA} to ANTIPODE_DATASTORES"),
    ),
    "spelling-of-the-host": Line(
        other_host,
        (UNNAMED, "web.py", "add shop=postgresql://db.internal:"),
        warned=("web", "'shop' under another name of its host", "Add shop=postgresql://db.inter"),
    ),
    "consumer-instrumented": Line(
        partial(skip, "worker", "celery"),
        UNHANDLED,
        ("worker", "a task has no scope", "call antipode.setup() without 'celery' in skip"),
    ),
    "worker-by-another-command": Line(other_command, UNHANDLED, ("worker", *NOT_SET_UP)),
    "standby-declared": Line(
        partial(without, "web", ("reader",)),
        (UNNAMED, "web.py", "add NAME={STANDBY} to ANTIPODE_DATASTORES"),
        warned=("web", "no rule names postgresql", "Add NAME={STANDBY}", "?reads_from=replica"),
    ),
    "reads-from": Line(
        partial(write, "web", "reader", "?reads_from=replica", ""),
        ("its reads are not judged", "Add ?reads_from=replica to its rule", "web.py"),
        warned=("web", "says that it is a replica", "?reads_from=replica in ANTIPODE_DATASTORES"),
    ),
    "one-name": Line(
        other_name,
        ("one log has several names", "Give it one name in the rules of all services", "also s"),
        warned=("web", "'shop'", "here as 'store' has its log", "spell it alike"),
    ),
    "publisher-instrumented": Line(
        partial(skip, "api", "celery"),
        UNLABELLED,
        ("api", "messages carry no lineage", "call antipode.setup() without 'celery' in skip"),
    ),
    "context-in-a-pool": Line(
        partial(skip, "worker", "threads"),
        ("read without a scope", "or started the thread", "skip none of it", "worker.py"),
        ("worker", "threads, and what pools of threads", "setup() without 'threads' in skip"),
        ("worker", "read of 'shop'", "outside a scope"),
    ),
    "flask": Line(
        partial(skip, "web", "flask"),
        ("read without a scope", "skip none of it", "web.py"),
        ("web", "nothing opens a scope for its requests", "setup() without 'flask' in skip"),
        ("web", "read of 'shop'", "outside a scope"),
    ),
    "grant": Line(
        no_grant,
        ("its server cannot show what it has", "GRANT"),
        ("worker", "problem", "GRANT"),
    ),
}


#: Lines that one dry run tells of together: of services or kinds that hide nothing of each other.
TOGETHER = (
    ("setup-at-the-consumer", "rule-at-the-writer", "spelling-of-the-host"),
    ("consumer-instrumented", "port-at-the-writer", "standby-declared"),
    ("worker-by-another-command", "setup-too-late"),
    ("setup-at-the-publisher", "flask"),
    ("publisher-instrumented", "port-at-the-reader"),
    ("setup-at-the-called-service", "rule-at-the-reader"),
    ("context-in-a-pool", "reads-from"),
    ("one-name",),
    ("grant",),
)


@pytest.fixture
def shop(servers: Servers, tmp_path: Path) -> Shop:
    """All of its lines there."""
    return Shop(tmp_path, servers)


def says(text: str, shop: Shop, *words: str) -> None:
    """Assert that *text* has all of *words*."""
    for each in shop.spelled(words):
        assert each in text, text


def test_there_are_eighteen() -> None:
    """As many as the table above has."""
    assert __doc__ is not None
    assert len(LINES) == __doc__.count("\n| ") - 1 == 18
    assert sorted(LINES) == sorted(line for lines in TOGETHER for line in lines)


@pytest.mark.parametrize("service", SERVICES)
def test_doctor_says_nothing_where_nothing_is_forgotten(service: str, shop: Shop) -> None:
    """All is in order, and nothing is beyond its knowledge."""
    said = shop.doctor(service)
    assert said.endswith("exit 0")
    assert "cannot tell" not in said


def test_services_warn_of_nothing_where_nothing_is_forgotten(shop: Shop) -> None:
    """As they serve."""
    with shop.serving():
        shop.order()
    assert not "".join(map(shop.told, SERVICES))


@pytest.mark.ci
def test_the_dry_run_finds_nothing_where_nothing_is_forgotten(shop: Shop) -> None:
    """It says what it counted."""
    report = shop.dry_run()
    assert "\nantipode: no missing barrier, 6 reads guarded by automatic barriers (" in report
    assert "lint" not in report
    assert "not judged" not in report
    assert "without a client" not in report


@pytest.mark.parametrize("lines", TOGETHER, ids=" and ".join)
def test_the_dry_run_tells(lines: tuple[str, ...], shop: Shop) -> None:
    """Its report has the reason, the place and what to add; what a service warns of, it does."""
    found = [LINES[each] for each in lines]
    for each in found:
        each.forget(shop)
    report = shop.dry_run()
    for each in found:
        says(report, shop, *each.dry_run)
        if each.doctor and each.warned:
            service, *words = each.warned
            says(shop.told(service), shop, *words)


@pytest.mark.parametrize("line", [name for name, each in LINES.items() if each.doctor])
def test_doctor_tells(line: str, shop: Shop) -> None:
    """Of the service where it is forgotten, without a request."""
    LINES[line].forget(shop)
    service, *words = LINES[line].doctor
    says(shop.doctor(service), shop, *words)


@pytest.mark.parametrize("line", [name for name, each in LINES.items() if not each.doctor])
def test_the_service_warns(line: str, shop: Shop) -> None:
    """With its first request, of what doctor cannot know: no client is made before."""
    LINES[line].forget(shop)
    service, *words = LINES[line].warned
    says(shop.warned(service, shop.spelled(words)), shop, *words)
