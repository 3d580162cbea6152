"""What is taken from botocore, and clients of the library's own, in one place."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from antipode import ConfigurationError
from antipode.shim import own_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

#: Seconds that one request of the library's own may take, and that connecting may.
REQUEST_S = 1.0
#: Errors after which another look may not fail.
_PASSING = frozenset(
    """
    InternalServerError LimitExceededException ProvisionedThroughputExceededException
    ReplicatedWriteConflictException RequestLimitExceeded RequestTimeout ServiceUnavailable
    ServiceUnavailableException SlowDown Throttling ThrottlingException
    TransactionInProgressException
    """.split()  # noqa: SIM905 - a table that is read by eye
)
#: A refusal that says that the same transaction may be under way.
_UNDER_WAY = "TransactionInProgressException"
_SERVER_ERROR = 500

#: Whether the present call is one of the library's own, which no handler of ours is to see.
_own: ContextVar[bool] = ContextVar("antipode_aws_own", default=False)


@contextmanager
def own_call() -> Iterator[None]:
    """A block in which an instrumented client does what a plain one does."""
    token = _own.set(True)
    try:
        yield
    finally:
        _own.reset(token)


def is_own_call() -> bool:
    """Whether the present call is in such a block."""
    return _own.get()


def botocore_module(extra: str = "dynamodb") -> ModuleType:
    """The client library under boto3 and aiobotocore.

    Args:
        extra: of this package, which installs it.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import botocore
        import botocore.client  # pyright: ignore[reportUnusedImport]
        import botocore.exceptions  # pyright: ignore[reportUnusedImport]
        import botocore.session  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        msg = f'the {extra} shim needs boto3: pip install "antipode-xcy[{extra}]"'
        raise ConfigurationError(msg) from error
    found: ModuleType = botocore
    return found


@lru_cache(maxsize=1)
def client_error() -> type[Exception]:
    """What a refusal of the service becomes."""
    error: type[Exception] = botocore_module().exceptions.ClientError
    return error


@lru_cache(maxsize=1)
def _link_errors() -> tuple[type[Exception], ...]:
    errors = botocore_module().exceptions
    return errors.ConnectionError, errors.HTTPClientError


@lru_cache(maxsize=1)
def _unsent_errors() -> tuple[type[Exception], ...]:
    """What is raised before a request leaves."""
    errors = botocore_module().exceptions
    return (
        errors.ParamValidationError,
        errors.NoCredentialsError,
        errors.PartialCredentialsError,
        errors.CredentialRetrievalError,
        errors.NoRegionError,
        errors.EndpointProviderError,
    )


@lru_cache(maxsize=1)
def _refused_links() -> tuple[type[Exception], ...]:
    """What an attempt raises whose request did not leave."""
    errors = botocore_module().exceptions
    return errors.EndpointConnectionError, errors.ConnectTimeoutError, errors.ProxyConnectionError


def code_of(response: Any) -> str:
    """The code of a refusal; empty where there is none."""
    return str(response.get("Error", {}).get("Code", ""))


def passes(error: BaseException) -> bool:
    """Whether a look that failed by *error* is worth repeating."""
    if isinstance(error, client_error()):
        response: Any = getattr(error, "response", {})
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return code_of(response) in _PASSING or status >= _SERVER_ERROR
    return isinstance(error, (*_link_errors(), OSError))


def refused(response: Any, *, attempts: int) -> bool:
    """Whether a reply with an error proves that nothing was written.

    Args:
        response: parsed.
        attempts: how often the request was sent: an earlier one may have done it.
    """
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return attempts <= 1 and status < _SERVER_ERROR and code_of(response) != _UNDER_WAY


def did_nothing(response: Any, error: BaseException | None) -> bool:
    """Whether one attempt surely did nothing.

    Args:
        response: parsed; None without one.
        error: why there is none.
    """
    if response is None:
        return isinstance(error, _refused_links())
    return bool(code_of(response)) and refused(response, attempts=1)


def in_doubt(error: BaseException) -> bool:
    """Whether a write whose call raised *error* may have been done."""
    if isinstance(error, client_error()):
        response: Any = getattr(error, "response", {})
        retried = response.get("ResponseMetadata", {}).get("RetryAttempts", 0)
        return not refused(response, attempts=retried + 1)
    return not isinstance(error, _unsent_errors())


class Settings(NamedTuple):
    """How a client reaches its region.

    Attributes:
        region: its name.
        endpoint_url: where requests go.
        is_aws: whether that is where AWS has the region, so that other regions can be derived.
        verify: as boto3 takes it.
        proxies: as botocore's ``Config`` takes them.
        s3: the same, of S3 alone, such as the style of addresses.
        credentials: of the client: botocore's own object, or None for what a new session finds.
    """

    region: str
    endpoint_url: str
    is_aws: bool
    verify: Any
    proxies: Any
    s3: Any
    credentials: Any

    @classmethod
    def of(cls, client: Any) -> Settings:
        """Those of *client*."""
        url = str(client.meta.endpoint_url)
        host = url.partition("//")[2].partition("/")[0].partition(":")[0]
        session = getattr(getattr(client, "_endpoint", None), "http_session", None)
        signer = getattr(client, "_request_signer", None)
        held = getattr(signer, "_credentials", None)
        return cls(
            region=str(client.meta.region_name),
            endpoint_url=url,
            is_aws=host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws")),
            verify=getattr(session, "_verify", None),
            proxies=getattr(client.meta.config, "proxies", None),
            s3=getattr(client.meta.config, "s3", None),
            credentials=_synchronous(held),
        )

    @property
    def where(self) -> tuple[str, str]:
        """What distinguishes this region from others."""
        return self.region, self.endpoint_url

    def connect(self, service: str, region: str, endpoint_url: str | None) -> Any:
        """A client of the library's own, which tries once and has no handlers of ours."""
        botocore = botocore_module()
        session = botocore.session.Session()
        session.register_component("data_loader", _loader())
        if self.credentials is not None:
            session._credentials = self.credentials  # noqa: SLF001 - they renew themselves
        config = botocore.client.Config(
            connect_timeout=REQUEST_S,
            read_timeout=REQUEST_S,
            retries={"total_max_attempts": 1},
            proxies=self.proxies,
            s3=self.s3,
        )
        create = partial(session.create_client, service, region_name=region, config=config)
        return own_client(partial(create, endpoint_url=endpoint_url, verify=self.verify))


@lru_cache(maxsize=1)
def _loader() -> Any:
    """What reads the descriptions of services, once a process: they are megabytes of JSON."""
    import botocore.loaders

    return botocore.loaders.create_loader()


def _synchronous(credentials: Any) -> Any:
    """*credentials* as synchronous code can use them; None where it cannot."""
    from inspect import iscoroutinefunction

    if credentials is None:
        return None
    if not iscoroutinefunction(credentials.get_frozen_credentials):
        return credentials
    from botocore.credentials import Credentials, RefreshableCredentials

    if isinstance(credentials, RefreshableCredentials):
        return None
    return Credentials(credentials.access_key, credentials.secret_key, credentials.token)
