"""An application that knows of this library alone: `opentelemetry-instrument` does the rest."""

from __future__ import annotations

from fastapi import FastAPI
from opentelemetry import propagate

import antipode
from antipode.integrations.asgi import instrument_app
from tests.integration._ingress import ADDED

app = FastAPI()


@app.get("/")
async def write() -> dict[str, str]:
    """Write, and say what would be sent on."""
    antipode.append(ADDED)
    headers: dict[str, str] = {}
    propagate.inject(headers)
    return headers


antipode.instrument()
instrument_app(app)
