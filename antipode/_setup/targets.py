"""What :func:`antipode.setup` covers, and how it learns that a package is there."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

_INTEGRATIONS = "antipode.integrations"
_SHIMS = "antipode_shims"


@dataclass(frozen=True, slots=True)
class Target:
    """Something that one integration covers.

    Attributes:
        name: as users skip it.
        package: what has to be installed; empty for the standard library.
        module: once this is imported, there is something to cover; empty: at once.
        integration: our module.
        kind: the class of *module* whose instances are applications; empty where the integration
            covers the process by itself.
        within: the package of our module.
    """

    name: str
    package: str
    module: str
    integration: str
    kind: str = ""
    within: str = _INTEGRATIONS

    @property
    def integration_module(self) -> str:
        """The full name of our module."""
        return f"{self.within}.{self.integration}"

    @property
    def installed(self) -> bool:
        """Whether there can be anything to cover."""
        return not self.package or is_installed(self.package)


def is_installed(package: str) -> bool:
    """Whether a top-level package can be imported; it is not."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # Somebody put a stand-in into sys.modules.
        return False


#: In the order in which they are named in the log.
TARGETS = (
    Target("starlette", "starlette", "starlette.applications", "asgi", "Starlette"),
    Target("flask", "flask", "flask.app", "wsgi", "Flask"),
    Target("django", "django", "django.core.handlers.wsgi", "wsgi", "WSGIHandler"),
    Target("django", "django", "django.core.handlers.asgi", "asgi", "ASGIHandler"),
    Target("aiohttp-server", "aiohttp", "aiohttp.web", "aiohttp_server"),
    Target("grpc", "grpc", "grpc", "grpc"),
    Target("celery", "celery", "celery", "celery"),
    Target("dramatiq", "dramatiq", "dramatiq", "dramatiq"),
    Target("rq", "rq", "rq", "rq"),
    Target("huey", "huey", "huey", "huey"),
    Target("aiocache", "aiocache", "aiocache.decorators", "aiocache"),
    Target("aiodataloader", "aiodataloader", "aiodataloader", "aiodataloader"),
    Target("strawberry", "strawberry", "strawberry.dataloader", "strawberry"),
    Target("aiohttp-client", "aiohttp", "aiohttp", "aiohttp"),
    Target("httpx", "httpx", "httpx", "httpx"),
    Target("requests", "requests", "requests", "requests"),
    Target("threads", "", "", "threads"),
    Target("processes", "", "", "processes"),
    Target("asyncio", "", "", "asyncio"),
)
#: Clients of datastores, whose names come from the setting ``datastores``.
STORES = (
    Target("redis", "redis", "redis", "redis", within=_SHIMS),
    Target("mysql", "pymysql", "pymysql.connections", "mysql", within=_SHIMS),
    Target("mysql", "aiomysql", "aiomysql.connection", "mysql", within=_SHIMS),
    Target("mysql", "MySQLdb", "MySQLdb.connections", "mysql", within=_SHIMS),
    Target("mongodb", "pymongo", "pymongo", "mongodb", within=_SHIMS),
    Target("postgresql", "psycopg", "psycopg", "postgresql", within=_SHIMS),
    Target("postgresql", "asyncpg", "asyncpg", "postgresql", within=_SHIMS),
    Target("postgresql", "psycopg2", "psycopg2", "postgresql", within=_SHIMS),
    Target("rabbitmq", "pika", "pika", "rabbitmq", within=_SHIMS),
    Target("rabbitmq", "aio_pika", "aio_pika", "rabbitmq", within=_SHIMS),
    Target("activemq", "stomp", "stomp.connect", "activemq", within=_SHIMS),
    Target("dynamodb", "botocore", "botocore.client", "dynamodb", within=_SHIMS),
    Target("s3", "botocore", "botocore.client", "s3", within=_SHIMS),
    Target("sns", "botocore", "botocore.client", "sns", within=_SHIMS),
)
#: Names of frameworks that are covered by what they are built on.
ALIASES = {"fastapi": "starlette"}
NAMES = tuple(dict.fromkeys(target.name for target in (*TARGETS, *STORES)))

#: What carries requests or writes and is not covered, by the package that is imported.
UNCOVERED = {
    **{name: name for name in ("bottle", "falcon", "litestar", "pyramid", "quart", "sanic")},
    **{name: name for name in ("tornado", "arq", "cashews", "urllib3")},
    **{name: name for name in ("aiokafka", "faststream", "taskiq")},
    "confluent_kafka": "confluent-kafka",
    "kafka": "kafka-python",
    **{name: name for name in ("aiomcache", "asyncmy", "elasticsearch", "motor", "pylibmc")},
    "cassandra": "cassandra-driver",
    "mysql": "mysql-connector-python",
    "opensearchpy": "opensearch-py",
    "pymemcache": "pymemcache",
}
#: What is there because another package that is covered needs it.
_ONLY_BENEATH = {"urllib3": "requests"}
#: The packages of clients as they are called where they are installed.
_DISTRIBUTIONS = {
    "pymysql": "PyMySQL",
    "MySQLdb": "mysqlclient",
    "aio_pika": "aio-pika",
    "stomp": "stomp.py",
    "botocore": "boto3",
}


def uncovered() -> list[str]:
    """The installed packages that nothing here covers."""
    return [
        name
        for package, name in UNCOVERED.items()
        if is_installed(package)
        and not (package in _ONLY_BENEATH and is_installed(_ONLY_BENEATH[package]))
    ]


def clients(named: frozenset[str]) -> list[str]:
    """The installed clients of datastores that have no name: of stores that *named* leaves out."""
    found = (
        _DISTRIBUTIONS.get(each.package, each.package)
        for each in STORES
        if each.name not in named and each.installed
    )
    return list(dict.fromkeys(found))
