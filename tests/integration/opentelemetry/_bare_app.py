"""An application that instruments nothing itself: `opentelemetry-instrument` does."""

from __future__ import annotations

from fastapi import FastAPI

import antipode
from tests.integration._ingress import ADDED

app = FastAPI()


@app.get("/")
async def write() -> None:
    """Write."""
    antipode.append(ADDED)
