"""The clients whose sessions are played, by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .activemq import StompPy
from .asyncpg import Asyncpg
from .django import Django
from .dynamodb import AsyncDynamoDB, DynamoDB
from .lines import sessions
from .mongodb import AsyncPyMongo, PyMongo
from .mysql import Aiomysql, MySQLClient, PyMySQL, PyMySQLMariaDB
from .psycopg import Psycopg, SyncPsycopg
from .psycopg2 import Psycopg2
from .rabbitmq import Pika
from .redis import AsyncRedisPy, RedisPy
from .sqlalchemy import AsyncSQLAlchemy, SQLAlchemy

if TYPE_CHECKING:
    from tests.programs._line import Client

CLIENTS: dict[str, Client] = {
    "psycopg": partial(sessions, SyncPsycopg),
    "psycopg-async": partial(sessions, Psycopg),
    "asyncpg": partial(sessions, Asyncpg),
    "psycopg2": partial(sessions, Psycopg2),
    "sqlalchemy": partial(sessions, SQLAlchemy),
    "sqlalchemy-async": partial(sessions, AsyncSQLAlchemy),
    "django": partial(sessions, Django),
    "pymysql": partial(sessions, PyMySQL),
    "mysqlclient": partial(sessions, MySQLClient),
    "aiomysql": partial(sessions, Aiomysql),
    "redis-py": partial(sessions, RedisPy),
    "redis-py-async": partial(sessions, AsyncRedisPy),
    "pymongo": partial(sessions, PyMongo),
    "pymongo-async": partial(sessions, AsyncPyMongo),
    "dynamodb": partial(sessions, DynamoDB),
    "dynamodb-async": partial(sessions, AsyncDynamoDB),
    "pika": partial(sessions, Pika),
    "pymysql-mariadb": partial(sessions, PyMySQLMariaDB),
}
#: Those of a broker whose answers take a hundred times as long.
BROKERS: dict[str, Client] = {"stomp.py": partial(sessions, StompPy)}
