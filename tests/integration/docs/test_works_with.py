"""What the page "Does it work with ...?" calls tried has a test; every row leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from antipode._setup.targets import UNCOVERED

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "start" / "works-with.md"
WORDS = ("by itself", "one line", "by hand", "as Java", "no: ")
LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
#: The name of a row that says "tried" as the page shows it: what tries it, below tests/.
TRIED = {
    "FastAPI, Starlette": "integration/asgi/test_asgi.py",
    "Flask": "integration/wsgi/test_wsgi.py",
    "Django, ASGI and WSGI; Django REST framework": "integration/django/test_ingress.py",
    "aiohttp's server": "integration/aiohttp_server/test_aiohttp_server.py",
    "gRPC, sync and asyncio": "integration/grpc/test_lineage.py",
    "httpx, requests, aiohttp's client": "integration/http_clients/test_clients.py",
    "gunicorn, uvicorn, gevent": "integration/workers/test_workers.py",
    "SQLAlchemy 2: psycopg, psycopg2, asyncpg, PyMySQL, mysqlclient, aiomysql": (
        "integration/postgresql/test_sqlalchemy.py",
        "integration/mysql/test_sqlalchemy.py",
    ),
    "Django's ORM: PostgreSQL, MySQL, MariaDB": (
        "integration/postgresql/test_django.py",
        "integration/mysql/test_django.py",
    ),
    "psycopg 3 and its pool, psycopg2, asyncpg": (
        "integration/rules/test_postgresql_drivers.py",
        "integration/postgresql/test_psycopg.py",
        "integration/postgresql/test_psycopg2.py",
        "integration/postgresql/test_asyncpg.py",
    ),
    "PyMySQL, mysqlclient, aiomysql": (
        "integration/mysql/test_client.py",
        "integration/mysql/test_mysqlclient.py",
        "integration/mysql/test_client_async.py",
    ),
    "asyncmy, mysql-connector-python": (
        "integration/mysql/test_client_async.py",
        "unit/test_setup_names.py",
    ),
    "redis-py, sync and asyncio; Sentinel": (
        "integration/redis/test_client.py",
        "integration/redis/test_client_async.py",
        "integration/redis/test_sentinel.py",
    ),
    "Django's cache of Redis": "integration/setup/test_datastores.py",
    "Redis Cluster": "integration/redis/test_client.py",
    "PyMongo, sync and asyncio, replica sets": (
        "integration/mongodb/test_client.py",
        "integration/mongodb/test_client_async.py",
    ),
    "MongoDB's sharded clusters": "integration/mongodb/test_endpoint.py",
    "boto3, aiobotocore: DynamoDB, S3": (
        "integration/dynamodb/test_client.py",
        "integration/dynamodb/test_client_async.py",
        "integration/s3/test_client.py",
        "integration/s3/test_client_async.py",
        "contract/test_seaweedfs.py",
    ),
    "Celery, over RabbitMQ and Redis": "integration/celery/test_tasks.py",
    "aiodataloader, and Strawberry's data loaders": "integration/coalesced/test_loaders.py",
    "aiocache in memory and in Redis": "integration/coalesced/test_caches.py",
    "Dramatiq, over RabbitMQ and Redis": "integration/queues/test_dramatiq.py",
    "RQ": "integration/queues/test_rq.py",
    "Django Channels": "integration/streams/test_event_headers.py",
    "huey, over Redis": "integration/queues/test_huey.py",
    "pika, aio-pika": ("integration/rabbitmq/test_publish.py", "integration/rabbitmq/test_aio.py"),
    "stomp.py (ActiveMQ)": "integration/activemq/test_connection.py",
    "boto3: SNS, SQS": "integration/sns/test_client.py",
    "threads, process pools, event loops": (
        "integration/opentelemetry/test_background.py",
        "unit/test_processes.py",
    ),
    "Spring Boot 3: MVC, WebFlux, RestClient, WebClient, JMS, RabbitMQ, data sources": (
        "spring/BootTest.java",
        "spring/BootReactiveTest.java",
        "spring/BootJmsTest.java",
        "spring/BootRabbitTest.java",
        "spring/PoolsTest.java",
    ),
    "JDBC: PostgreSQL, MySQL, MariaDB; HikariCP and other pools": (
        "integration/postgresql/test_jdbc.py",
        "integration/mysql/test_jdbc.py",
    ),
    "Hibernate, Spring Data JPA, jOOQ, MyBatis": "spring/BootJpaPostgreSqlTest.java",
    "Lettuce, Jedis": "integration/redis/test_java_clients.py",
    "MongoDB's driver, sync": "integration/mongodb/test_java_client.py",
    "AWS SDK 2: DynamoDB, S3, SNS, SQS": (
        "dynamodb/EmulatorTest.java",
        "s3/EmulatorTest.java",
        "sns/EmulatorTest.java",
    ),
    "gRPC": "grpc/InterceptorsTest.java",
    "virtual threads": "request/VirtualThreadsTest.java",
    "Kotlin": "request/CoroutinesTest.java",
    "hiredis, libmariadb, libmongoc, librabbitmq, gRPC": (
        "integration/redis/test_hiredis.py",
        "integration/mysql/test_libmariadb.py",
        "integration/mongodb/test_libmongoc.py",
        "integration/rabbitmq/test_librabbitmq.py",
        "integration/grpc/test_cpp.py",
    ),
    "HAProxy, TCP balancers": (
        "integration/redis/test_proxies.py",
        "integration/mysql/test_proxies.py",
        "integration/mongodb/test_proxies.py",
    ),
    "PgBouncer": "integration/postgresql/test_pgbouncer.py",
    "MySQL Router": "integration/mysql/test_proxies.py",
    "ProxySQL, MaxScale, pgcat, Pgpool-II that route each statement": (
        "integration/mysql/test_proxies.py"
    ),
    "Valkey": "../tools/test_valkey.sh",
    "java-dataloader, Caffeine's loaders": (
        "together/TogetherDataLoaderTest.java",
        "together/TogetherCaffeineTest.java",
    ),
    "Websockets, server-sent events": "propagation/EventHeadersTest.java",
    "OpenTelemetry's instrumentations of the same clients": (
        "integration/mysql/test_opentelemetry.py",
        "integration/redis/test_opentelemetry.py",
        "integration/mongodb/test_opentelemetry.py",
        "integration/rabbitmq/test_opentelemetry.py",
    ),
}


class Row(NamedTuple):
    """A line of a table: name, how it is used, what was tried."""

    name: str
    how: str
    tried: str


def rows() -> list[Row]:
    """The lines of all tables that name something."""
    text = PAGE.read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return [Row(*row) for row in cells if len(row) == 3 and row[0] not in ("name", "---")]


def shown(text: str) -> str:
    """A cell as a reader sees it: links without their addresses."""
    return LINK.sub(r"\1", text)


def exists(test: str) -> bool:
    """Whether a test is there: of Python below tests/, of Java by its package and name."""
    if test.endswith(".java"):
        return bool(list((ROOT / "java").glob(f"*/src/test/java/io/antipode/{test}")))
    return (ROOT / "tests" / test).is_file()


def test_what_was_tried_has_a_test() -> None:
    """Each row that says "tried" has its tests, no other row has, and the tests are there."""
    said = {shown(row.name) for row in rows() if re.search(r"\btried\b(?! once)", row.tried)}
    assert said == set(TRIED)
    named = [
        test for tests in TRIED.values() for test in ([tests] if isinstance(tests, str) else tests)
    ]
    assert [test for test in named if not exists(test)] == []


def test_every_row_leads_somewhere() -> None:
    """There are some sixty names; each has a way, and a link to its guide or to the reason."""
    found = rows()
    assert len(found) >= 55
    assert [row.name for row in found if not row.how.startswith(WORDS)] == []
    assert [row.name for row in found if not LINK.search("".join(row))] == []


def test_what_setup_names_as_not_covered_has_a_row() -> None:
    """Whoever reads the name in the log line finds what to do about it."""
    said = " ".join(row.name for row in rows()).lower()
    assert [name for name in UNCOVERED.values() if name not in said] == []


def test_no_row_is_without_evidence() -> None:
    """A row says what was tried, or that it was only read; one that says no, what happens."""
    words = re.compile(r"\btried\b|\bby reading\b")
    silent = [row.name for row in rows() if not words.search(row.tried) and row.how[:4] != "no: "]
    assert silent == []


def test_links_lead_to_headings() -> None:
    """Each link of the page is to a file that exists, and to a heading of it."""
    for _, target in LINK.findall(PAGE.read_text(encoding="utf-8")):
        path, _, heading = target.partition("#")
        text = (PAGE.parent / path).read_text(encoding="utf-8")
        titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
        slugs = [re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower())) for title in titles]
        assert not heading or heading in slugs, target
