"""Says who the author of a post is."""

from __future__ import annotations

from typing import Any

from benchmarks.social_graph.services._process import Process

process = Process()
part_of, upload = process.message("Part"), process.upload()


def compose(request: Any) -> None:  # noqa: ANN401 - a message
    """Upload the author."""
    part = part_of(request_id=request.request_id, name="creator")
    part.post.creator.CopyFrom(request.user)
    upload(part)


process.serve("Users", "UserRequest", compose)
