"""Takes the media of a post, if they are of a kind that is shown."""

from __future__ import annotations

from typing import Any

from benchmarks.social_graph.services._process import Process

_KINDS = {"gif", "jpg", "mp4", "png"}

process = Process()
part_of, upload = process.message("Part"), process.upload()


def compose(request: Any) -> None:  # noqa: ANN401 - a message
    """Upload the media that are shown."""
    part = part_of(request_id=request.request_id, name="media")
    part.post.media.extend(each for each in request.media if each.media_type in _KINDS)
    upload(part)


process.serve("MediaFiles", "MediaRequest", compose)
