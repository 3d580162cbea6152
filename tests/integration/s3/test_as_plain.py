"""No reply, error or object differs from the plain client's, but for metadata."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

import antipode
from tests.integration._played import MODES, played
from tests.integration.s3._regions import POSTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.s3._regions import Regions

pytestmark = pytest.mark.store("s3")
ONE: dict[str, Any] = {"Bucket": POSTS, "Key": "played"}
PARTED: dict[str, Any] = {"Bucket": POSTS, "Key": "parted"}
#: What an application may do, refusals of the service and of the client among it.
CALLS: dict[str, Callable[[Any], Any]] = {
    "put": lambda client: client.put_object(**ONE, Body=b"a", Metadata={"own": "x"}),
    "again": lambda client: client.put_object(**ONE, Body=b"b", IfNoneMatch="*"),
    "get": lambda client: client.get_object(**ONE),
    "head": lambda client: client.head_object(**ONE),
    "copy": lambda client: client.copy_object(**ONE, CopySource=f"{POSTS}/played"),
    "invalid": lambda client: client.put_object(Bucket=POSTS, Key=1),
    "list": lambda client: client.list_objects_v2(Bucket=POSTS, Prefix="played"),
    "delete": lambda client: client.delete_object(**ONE),
    "several": lambda client: client.delete_objects(
        Bucket=POSTS, Delete={"Objects": [{"Key": "played"}, {"Key": "absent"}], "Quiet": True}
    ),
    "no bucket": lambda client: client.get_object(Bucket="absent", Key="played"),
    "begin": lambda client: client.create_multipart_upload(**PARTED),
}
STEPS = (
    *("get", "put", "get", "head", "copy", "get", "invalid", "list", "delete", "get", "put"),
    *("several", "head", "begin", "no bucket", "delete"),
)
#: What of a reply is another each time.
VARYING = {
    *("ResponseMetadata", "LastModified", "VersionId", "CopySourceVersionId", "UploadId"),
    "ReplicationStatus",
}


def steady(found: Any) -> Any:
    """A reply without what is another each time."""
    if isinstance(found, dict):
        return {name: steady(found[name]) for name in found if name not in VARYING}
    return [steady(each) for each in found] if isinstance(found, list) else found


class OneClient:
    """boto3."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.heard: list[str] = []

    def called(self, statement: str) -> Any:
        """The reply to a call, with what its body has."""
        reply = CALLS[statement](self.client)
        return {**reply, "Body": reply["Body"].read()} if "Body" in reply else reply

    def execute(self, statement: str) -> Any:
        try:
            return steady(self.called(statement))
        except ClientError as error:
            code = error.response["Error"].get("Code")  # Each client makes its classes itself.
            return type(error).__name__, code, error.operation_name
        except ParamValidationError as error:
            return type(error), str(error)

    def state(self) -> Any:
        return None

    def close(self) -> None:
        self.client.close()


class OneAsyncClient(OneClient):
    """aiobotocore."""

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(client)
        self.loop = loop

    def called(self, statement: str) -> Any:
        return self.loop.run_until_complete(self.awaited(statement))

    async def awaited(self, statement: str) -> Any:
        """The twin of :meth:`OneClient.called`."""
        reply = await CALLS[statement](self.client)
        return {**reply, "Body": await reply["Body"].read()} if "Body" in reply else reply


def stored(observer: Any) -> Any:
    """What others see of the object: its bytes, and the application's metadata."""
    try:
        found = observer.get_object(**ONE)
    except ClientError as error:
        return error.response["Error"]["Code"]
    own = {name: found["Metadata"][name] for name in found["Metadata"] if name == "own"}
    return found["Body"].read(), own


@pytest.mark.parametrize(("mode", "scoped"), MODES)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_session_is_the_plain_one(
    regions: Regions, mode: Any, *, scoped: bool, asynchronous: bool
) -> None:
    """Every step ends as it does without the library, and leaves the object that it does."""
    antipode.configure(mode=mode)
    observer = regions.client(regions.home)
    scripts = []
    for instrumented in (False, True):
        with ExitStack() as stack:
            session = made(regions, stack, asynchronous=asynchronous)
            if instrumented:
                regions.instrumented(session.client)
            if scoped:
                stack.enter_context(antipode.scope())
            scripts.append(played(session, STEPS, lambda: stored(observer)))
    for plain, ours in zip(*scripts, strict=True):
        assert ours == plain


def made(regions: Regions, stack: ExitStack, *, asynchronous: bool) -> OneClient:
    """A plain client of the first region, which ends with the stack."""
    if not asynchronous:
        return OneClient(regions.client(regions.home))
    session = pytest.importorskip("aiobotocore.session").get_session()
    loop = asyncio.new_event_loop()
    stack.callback(loop.close)
    creates = session.create_client("s3", **regions.options(regions.home))
    client = loop.run_until_complete(creates.__aenter__())
    stack.callback(lambda: loop.run_until_complete(creates.__aexit__(None, None, None)))
    return OneAsyncClient(client, loop)
