"""What :func:`antipode.setup` covers, and how it learns that a package is there."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

_INTEGRATIONS = "antipode.integrations"


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
    """

    name: str
    package: str
    module: str
    integration: str
    kind: str = ""

    @property
    def integration_module(self) -> str:
        """The full name of our module."""
        return f"{_INTEGRATIONS}.{self.integration}"

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
    Target("aiohttp-client", "aiohttp", "aiohttp", "aiohttp"),
    Target("httpx", "httpx", "httpx", "httpx"),
    Target("requests", "requests", "requests", "requests"),
    Target("threads", "", "", "threads"),
    Target("processes", "", "", "processes"),
    Target("asyncio", "", "", "asyncio"),
)
#: Names of frameworks that are covered by what they are built on.
ALIASES = {"fastapi": "starlette"}
NAMES = tuple(dict.fromkeys(target.name for target in TARGETS))

#: What carries requests or writes and is not covered, by the package that is imported.
UNCOVERED = {
    **{name: name for name in ("bottle", "falcon", "litestar", "pyramid", "quart", "sanic")},
    **{name: name for name in ("tornado", "arq", "dramatiq", "huey", "rq", "urllib3")},
    "aiokafka": "aiokafka",
    "confluent_kafka": "confluent-kafka",
    "kafka": "kafka-python",
    "asyncpg": "asyncpg",
    "psycopg": "psycopg",
    "psycopg2": "psycopg2",
}
#: What is there because another package that is covered needs it.
_ONLY_BENEATH = {"urllib3": "requests"}
#: Clients of datastores, each of which is instrumented with the name of its datastore.
CLIENTS = {
    "redis": "redis",
    "pymysql": "PyMySQL",
    "MySQLdb": "mysqlclient",
    "aiomysql": "aiomysql",
    "pymongo": "pymongo",
    "pika": "pika",
    "aio_pika": "aio-pika",
    "boto3": "boto3",
    "aiobotocore": "aiobotocore",
}


def uncovered() -> list[str]:
    """The installed packages that nothing here covers."""
    return [
        name
        for package, name in UNCOVERED.items()
        if is_installed(package)
        and not (package in _ONLY_BENEATH and is_installed(_ONLY_BENEATH[package]))
    ]


def clients() -> list[str]:
    """The installed clients of datastores."""
    return [name for package, name in CLIENTS.items() if is_installed(package)]
