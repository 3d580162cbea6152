"""A Django site in a process of its own: ``python -m`` this module wsgi|asgi prints its port."""

from __future__ import annotations

import secrets
import sys
from typing import Any

import django
from django.conf import settings

from antipode import calls
from tests.integration._ingress import asgi, wsgi


def show(request: Any) -> Any:
    """A view that says what call it runs in."""
    from django.http import JsonResponse

    call = calls.current()
    if call is None:
        return JsonResponse({})
    return JsonResponse({"name": call.name, "named": call.named, "caller": call.caller})


def refuse(request: Any) -> None:
    """A view that a call error leaves."""
    raise calls.DuplicateWaits("ask again")


def fail(request: Any) -> None:
    """A view that another error leaves."""
    raise LookupError


class Middleware:
    """One of the site's own."""

    def __init__(self, get_response: Any) -> None:
        """Wrap."""
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        """Serve a request."""
        return self.get_response(request)

    def process_exception(self, request: Any, error: Exception) -> Any:
        """It answers errors as it likes."""
        from django.http import HttpResponse

        return HttpResponse(status=418) if request.path == "/teapot" else None


def main(server: str) -> None:
    """Serve until the input ends."""
    from django.core.asgi import get_asgi_application
    from django.core.wsgi import get_wsgi_application
    from django.urls import path

    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["*"],
        SECRET_KEY=secrets.token_hex(),
        MIDDLEWARE=[f"{__name__}.Middleware"],
        LOGGING_CONFIG=None,
    )
    globals()["urlpatterns"] = [
        path("call", show),
        path("refuse", refuse),
        path("teapot", refuse),
        path("fail", fail),
    ]
    django.setup()
    make = get_wsgi_application if server == "wsgi" else get_asgi_application
    app: Any = calls.instrument_server(make(), caller=caller)
    assert calls.instrument_server(app) is app
    with (wsgi if server == "wsgi" else asgi)(app) as port:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        sys.stdin.read()


def caller(request: Any) -> str | None:
    """Whose request it is, as a gateway says."""
    if "HTTP_X_USER" in request:
        return str(request["HTTP_X_USER"])
    return next((v.decode() for k, v in request.get("headers", ()) if k == b"x-user"), None)


if __name__ == "__main__":
    main(sys.argv[1])
