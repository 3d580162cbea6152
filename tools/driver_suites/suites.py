"""Which suites there are: what their archives hold, and how each is run, most at a server."""

from __future__ import annotations

from dataclasses import dataclass, field

#: Of the user of every server that is started for a suite.
ACCOUNT = "app"


@dataclass(frozen=True)
class Suite:
    """The own tests of one driver, of the release that is installed, or of an emulator.

    In texts ``{host}`` and ``{port}`` stand for the address of the server.

    Attributes:
        distribution: whose source archive has the tests.
        folders: what is taken out of that; not the driver itself, where it is compiled.
        topology: the class of ``antipode_testing`` that starts its server; empty where the tests
            bring an emulator.
        rule: what ``ANTIPODE_DATASTORES`` says; empty where the driver has no rules.
        arguments: those of pytest; for Django the labels of its tests.
        variables: of its environment.
        needs: further distributions.
        installed: the distribution that is installed, where it has another name.
        release: of what is not installed.
        statements: what its server has to be told first.
        differ: tests that tell that the driver is instrumented, as expressions of
            ``fnmatch``, with the reason; they are not compared.
    """

    distribution: str
    folders: tuple[str, ...]
    topology: str
    arguments: tuple[str, ...]
    rule: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    installed: str = ""
    release: str = ""
    statements: tuple[str, ...] = ()
    differ: dict[str, str] = field(default_factory=dict)


_OUR_CLASS = "the class of a connection or a cursor is one of ours"
_NO_SERVER = "a connection that never connects cannot be instrumented"

_PSYCOPG2 = Suite(
    "psycopg2",
    ("tests",),
    "PostgreSQLTopology",
    ("tests",),
    installed="psycopg2-binary",
    variables={
        "PSYCOPG2_TESTDB": ACCOUNT,
        "PSYCOPG2_TESTDB_HOST": "{host}",
        "PSYCOPG2_TESTDB_PORT": "{port}",
        "PSYCOPG2_TESTDB_USER": ACCOUNT,
        "PSYCOPG2_TESTDB_PASSWORD": ACCOUNT,
    },
    differ={
        "*::TestConnectionInfo::*": _NO_SERVER,
        "*::test_cursor_factory_none": _OUR_CLASS,
        "*::ConnectTestCase::*": "it looks at the arguments that psycopg2.connect() passes on",
    },
)
_ASYNCPG = Suite(
    "asyncpg",
    ("tests",),
    "PostgreSQLTopology",
    ("tests", "--deselect", "tests/test__sourcecode.py"),
    variables={
        "PGHOST": "{host}",
        "PGPORT": "{port}",
        "PGUSER": ACCOUNT,
        "PGPASSWORD": ACCOUNT,
        "PGDATABASE": ACCOUNT,
    },
    needs=("distro",),
    differ={
        "*::test_introspection_no_stmt_cache_02": "it counts names, and our questions have some"
    },
)
_DJANGO = Suite(
    "django",
    ("tests",),
    "PostgreSQLTopology",
    (
        "backends",
        "transactions",
        "transaction_hooks",
        "select_for_update",
        "bulk_create",
        "get_or_create",
        "delete",
        "raw_query",
        "prefetch_related",
        "cache",
        "test_utils",
        "migration_test_data_persistence",
        "multiple_database",
    ),
    rule="suite=postgresql://{host}:{port}",
)
_SQLALCHEMY = Suite(
    "sqlalchemy",
    ("test", "lib", "setup.cfg", "pyproject.toml"),
    "PostgreSQLTopology",
    (
        "test/dialect/postgresql",
        "test/dialect/test_suite.py",
        "test/engine",
        "test/orm/test_transaction.py",
        "--dburi",
        f"postgresql+psycopg://{ACCOUNT}:{ACCOUNT}@{{host}}:{{port}}/{ACCOUNT}",
    ),
    rule="suite=postgresql://{host}:{port}",
    statements=(
        "CREATE SCHEMA test_schema",
        "CREATE SCHEMA test_schema_2",
        "CREATE EXTENSION hstore",
        "CREATE EXTENSION citext",
    ),
    differ=dict.fromkeys(
        (
            "*::DialectEventTest::test_connect_do_connect*",
            "*::DialectEventTest::test_connect_replace_params",
            "*::QueuePoolTest::test_recycle_pool_no_race",
        ),
        "its driver is a mock, whose attributes say that it is instrumented as another one",
    ),
)
#: What one server without modules can run.
_ALONE = (
    "not onlycluster and not redismod and not ssl and not replica and not cp_integration "
    "and not multidb_integration"
)
_REDIS = Suite(
    "redis",
    ("tests", "pyproject.toml"),
    "RedisTopology",
    (
        "tests/test_commands.py",
        "tests/test_pipeline.py",
        "tests/test_pubsub.py",
        "tests/test_connection_pool.py",
        "tests/test_lock.py",
        "tests/test_scripting.py",
        "tests/test_encoding.py",
        "tests/test_monitor.py",
        "tests/test_asyncio",
        "--ignore=tests/test_asyncio/test_multidb",
        "--ignore=tests/test_asyncio/test_scenario",
        "--ignore=tests/test_asyncio/test_credentials.py",
        "-m",
        _ALONE,
        "--redis-url=redis://{host}:{port}/0",
    ),
    rule="suite=redis://{host}:{port}/0",
    needs=("pybreaker", "pytest-timeout"),
)
_REGIONS = ("us-east-1", "us-east-2", "us-west-1", "us-west-2", "eu-west-1", "eu-west-2")
#: The emulator with what it needs.
_MOTO = (
    *("moto==5.2.5", "responses", "werkzeug", "xmltodict", "py-partiql-parser"),
    *("cryptography", "cffi", "pycparser", "requests", "urllib3", "idna", "certifi"),
    *("charset_normalizer", "jinja2", "markupsafe", "freezegun", "requests_mock"),
    *("flask", "flask_cors", "itsdangerous", "click", "blinker"),
)


def _moto(store: str, *tests: str, differ: dict[str, str]) -> Suite:
    """Tests of an emulator that mocks AWS within the process, by clients of boto3."""
    return Suite(
        "moto",
        ("tests", "setup.cfg"),
        "",
        (*tests, "-p", "no:cacheprovider"),
        rule=", ".join(f"suite={store}://{region}" for region in _REGIONS),
        variables={
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "emulated",
            "AWS_SECRET_ACCESS_KEY": "emulated",
        },
        needs=_MOTO,
        release="5.2.5",
        differ=differ,
    )


_MOTO_DYNAMODB = _moto(
    "dynamodb",
    "tests/test_dynamodb",
    differ={
        "*::test_export_table": "an export shows our attribute",
        "*_statements.py::test_update_data": "the emulator knows one clause of an UPDATE alone",
    },
)
_MOTO_S3 = _moto(
    "s3",
    "tests/test_s3",
    # They need Docker, or servers.
    "--ignore=tests/test_s3/test_s3_cloudformation.py",
    "--ignore=tests/test_s3/test_s3_lambda_integration.py",
    differ={},
)
_MOTO_SNS = _moto(
    "sns",
    *("tests/test_sns", "tests/test_sqs"),
    differ=dict.fromkeys(
        (
            "tests/test_sns/*::test_filtering_*",
            "tests/test_sns/*::test_publish_batch_to_sqs",
            "tests/test_sns/*::test_publish_to_sqs_*",
            "tests/test_sns/*::test_publish_with_upper_cased_message_attributes",
        ),
        "the envelope of SNS shows our attribute",
    ),
)
_AIOBOTOCORE = Suite(
    "aiobotocore",
    ("tests", "scripts", "pyproject.toml"),
    "",
    (
        *("tests/test_basic_s3.py", "tests/test_dynamodb.py", "tests/test_sns.py"),
        *("tests/test_sqs.py", "-o", "cache_dir=.cache"),
    ),
    needs=(*_MOTO, "trio", "outcome", "sortedcontainers", "sniffio"),
)
#: Tests of botocore that make clients of the stores, or of what these call; the others read
#: descriptions of services.
_UNIT = (
    *("args", "client", "endpoint", "exceptions", "handlers", "hooks", "paginate"),
    *("s3_addressing", "session", "signers", "stub", "utils", "waiters"),
)
_FUNCTIONAL = (
    *("account_id_endpoints", "auth_config", "client", "client_metadata", "context_params"),
    *("disable_s3_express_auth", "discovery", "dynamodb", "history", "httpchecksum", "plugins"),
    *("query_compatibility", "retry", "s3", "s3_control_redirects", "s3express", "session"),
    *("sqs", "stub", "useragent"),
)
_BOTOCORE = Suite(
    "botocore",
    ("tests", "pyproject.toml"),
    "",
    (
        *(f"tests/unit/test_{each}.py" for each in _UNIT),
        *(f"tests/functional/test_{each}.py" for each in _FUNCTIONAL),
        *("-p", "no:cacheprovider"),
    ),
    differ=dict.fromkeys(
        (
            "*::TestAccesspointArn::test_copy_source_*",
            "*::TestS3200ErrorResponse::*",
            "*::TestS3Copy::test_s3_copy_object_with_incomplete_response",
        ),
        "it counts the requests of a copy, which asks for its source first",
    ),
)
#: By the name that the command line has.
SUITES = {
    "psycopg2": _PSYCOPG2,
    "asyncpg": _ASYNCPG,
    "django": _DJANGO,
    "sqlalchemy": _SQLALCHEMY,
    "redis": _REDIS,
    "botocore": _BOTOCORE,
    "aiobotocore": _AIOBOTOCORE,
    "moto-dynamodb": _MOTO_DYNAMODB,
    "moto-s3": _MOTO_S3,
    "moto-sns": _MOTO_SNS,
}
