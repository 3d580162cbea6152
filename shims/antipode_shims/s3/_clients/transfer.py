"""The threads of boto3's transfers: they are of the request that started them."""

from __future__ import annotations

import functools
from contextvars import Context, copy_context
from typing import Any

#: The attribute of a task that has the context in which it was made.
_ATTRIBUTE = "_antipode_context"


def follow_transfers() -> None:
    """Let each task of ``s3transfer`` run in the context in which it was made. Idempotent.

    Uploads, managed copies and downloads are such tasks, which run in threads of a pool. Those that
    a task makes have its context, so all have that of the call.
    """
    try:
        from s3transfer.tasks import Task
    except ImportError:  # aiobotocore alone has no transfers.
        return
    if hasattr(Task, _ATTRIBUTE):
        return
    made, called = Task.__init__, Task.__call__

    @functools.wraps(made)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        setattr(self, _ATTRIBUTE, copy_context())
        made(self, *args, **kwargs)

    @functools.wraps(called)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        context: Context | None = getattr(self, _ATTRIBUTE, None)
        if context is None:
            return called(self, *args, **kwargs)
        return context.run(called, self, *args, **kwargs)

    Task.__init__, Task.__call__ = make, call
    setattr(Task, _ATTRIBUTE, None)
