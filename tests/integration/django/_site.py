"""A Django site in a process of its own: ``python -m`` this module MIDDLEWARE... prints its port.

The first argument says how it is served, the second where the middleware of this library is, the
third whether OpenTelemetry instruments it.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from opentelemetry import propagate

import antipode
from antipode.shim import SYSTEM_CLOCK
from tests.integration._ingress import ADDED, CAME, asgi, late, wsgi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


#: What signed before the site got its secret.
SIGNED_BEFORE = "the secret of last year"


def write(request: Any) -> Any:
    """A view that writes, and says what it would send on."""
    from django.http import JsonResponse

    antipode.append(ADDED)
    headers: dict[str, str] = {}
    propagate.inject(headers)
    return JsonResponse({**headers, "late": late()}, headers={"Antipode-Lineage": "1~forged"})


async def write_async(request: Any) -> Any:
    """The same, asynchronously."""
    return write(request)


def fail(request: Any) -> None:
    """A view that fails after it wrote."""
    antipode.append(ADDED)
    raise ValueError


def stream(request: Any) -> Any:
    """A view that goes on to write while its response is sent."""
    from django.http import StreamingHttpResponse

    def parts() -> Iterator[str]:
        yield "begun "
        antipode.append(ADDED)
        yield antipode.serialize()

    async def aparts() -> AsyncIterator[str]:
        for part in parts():
            yield part

    antipode.append(CAME)
    return StreamingHttpResponse(aparts() if hasattr(request, "scope") else parts())


def public(request: Any) -> Any:
    """A view whose response any cache may keep."""
    from django.http import HttpResponse

    antipode.append(replace(ADDED, written_hour=SYSTEM_CLOCK.hour()))
    return HttpResponse(headers={"Cache-Control": "max-age=60"})


def fresh(request: Any) -> Any:
    """A view that writes just now, and says what it depends on then."""
    from django.http import HttpResponse

    antipode.append(replace(ADDED, written_hour=SYSTEM_CLOCK.hour()))
    response = HttpResponse(antipode.serialize())
    response.set_cookie("theirs", "1")
    return response


def token(request: Any) -> Any:
    """A view that writes just now, and says what an event of it would take along."""
    from django.http import HttpResponse

    from antipode.integrations.django import AntipodeSessionMiddleware

    antipode.append(replace(ADDED, written_hour=SYSTEM_CLOCK.hour()))
    return HttpResponse(AntipodeSessionMiddleware.token())


def seen(request: Any) -> Any:
    """A view that says what it depends on."""
    from django.http import HttpResponse

    return HttpResponse(antipode.serialize())


def main(server: str, place: str, instrumentation: str) -> None:
    """Serve until the input ends."""
    ours = "antipode.integrations.django"
    middleware = {
        "middleware": [f"{ours}.AntipodeMiddleware"],
        "session": [f"{ours}.AntipodeSessionMiddleware"],
        "around+session": [f"{ours}.AntipodeSessionMiddleware"],
    }
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        MIDDLEWARE=middleware.get(place, []),
        SECRET_KEY_FALLBACKS=[SIGNED_BEFORE],
        SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"),
        LOGGING_CONFIG=None,
        SECRET_KEY=secrets.token_hex(),
    )
    if instrumentation == "otel":
        from opentelemetry.instrumentation.django import DjangoInstrumentor

        DjangoInstrumentor().instrument()
    if place == "hook":
        from antipode.integrations import response_propagator

        response_propagator.instrument()
    antipode.instrument()
    django.setup()
    with served(server, place) as port:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        sys.stdin.read()


def served(server: str, place: str) -> Any:
    """The application, under a real server."""
    from antipode.integrations import asgi as our_asgi
    from antipode.integrations import wsgi as our_wsgi

    if server == "asgi":
        from django.core.asgi import get_asgi_application

        application = get_asgi_application()
        if place.startswith("around"):
            application = our_asgi.AntipodeMiddleware(application)
        if place == "helper":
            application = our_asgi.instrument_app(application)
        return asgi(application)
    from django.core.wsgi import get_wsgi_application

    application = get_wsgi_application()
    if place.startswith("around"):
        application = our_wsgi.AntipodeMiddleware(application)
    if place == "helper":
        application = our_wsgi.instrument_app(application)
    return wsgi(application)


def urls() -> list[Any]:
    """Where the views are."""
    from django.urls import path

    return [
        path("", write),
        path("async", write_async),
        path("fail", fail),
        path("stream", stream),
        path("public", public),
        path("fresh", fresh),
        path("seen", seen),
        path("token", token),
    ]


urlpatterns: list[Any] = []
if __name__ == "__main__":
    urlpatterns += urls()
    sys.modules["__main__"].urlpatterns = urlpatterns  # type: ignore[attr-defined]
    main(*sys.argv[1:])
