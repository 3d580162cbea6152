"""`antipode doctor --app`: what was done to an application, whatever modules are loaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from antipode_testing import MariaDBTopology

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
STORE = 'from antipode_shims import embedded\nembedded.shim("posts", "posts.db")\n'


class Told(NamedTuple):
    """What the program said: its exit status, and the verdict and the words of each subject."""

    status: int
    verdicts: dict[str, str]
    text: str


def doctor(folder: Path, app: str, source: str, **environment: str) -> Told:
    """Run the program over *source*, in a module ``shop`` with a datastore."""
    (folder / "shop.py").write_text(STORE + dedent(source), encoding="utf-8")
    path = os.pathsep.join((str(ROOT), str(ROOT / "shims")))
    # What this test run is told by its environment is none of the application's settings.
    ours = {key: value for key, value in os.environ.items() if not key.startswith("ANTIPODE_")}
    done = subprocess.run(
        [sys.executable, "-m", "antipode", "doctor", "--app", app],
        cwd=folder,
        env={**ours, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = re.findall(r"^(ok|problem|cannot tell) +(\S+)  ", done.stdout, flags=re.MULTILINE)
    return Told(done.returncode, {name: said for said, name in lines}, done.stdout + done.stderr)


FASTAPI = """
from fastapi import FastAPI
import antipode
from antipode.integrations import asgi
app = FastAPI()
"""
THEIRS = """
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
FastAPIInstrumentor.instrument_app(app)
"""
OWN = """
@app.middleware("http")
async def lineages(request, call_next):
    with antipode.scope(request.headers.get("lineage")):
        return await call_next(request)
"""
ADDED = "app.add_middleware(asgi.AntipodeMiddleware)"
AROUND = "app = asgi.AntipodeMiddleware(app)"


@pytest.mark.parametrize(
    ("source", "name", "told"),
    [
        ("", ":app", {"ingress": "problem", "requests": "problem"}),
        ("antipode.instrument()", ":app", {"ingress": "ok", "requests": "problem"}),
        ("asgi.instrument_app(app)", ":app", {"ingress": "ok", "requests": "ok"}),
        ("asgi.instrument_app(app)", "", {"ingress": "ok", "requests": "ok"}),
        ("antipode.setup()", ":app", {"ingress": "ok", "requests": "ok"}),
        ("def create():\n    return asgi.instrument_app(app)", ":create", {"requests": "ok"}),
        (ADDED, ":app", {"ingress": "ok", "requests": "ok"}),
        (AROUND, ":app", {"ingress": "ok", "requests": "ok"}),
        (THEIRS, ":app", {"ingress": "problem", "requests": "ok", "responses": "cannot tell"}),
        (f"{THEIRS}antipode.instrument()", ":app", {"ingress": "ok", "requests": "ok"}),
        (f"{OWN}antipode.instrument()", ":app", {"ingress": "ok", "requests": "cannot tell"}),
    ],
)
def test_fastapi(tmp_path: Path, source: str, name: str, told: dict[str, str]) -> None:
    """The application object decides, not that `antipode.integrations.asgi` is imported."""
    found = doctor(tmp_path, f"shop{name}", f"{FASTAPI}{source}\n")
    assert told.items() <= found.verdicts.items(), found.text
    assert found.status == ("problem" in found.verdicts.values()), found.text


FLASK = """
from flask import Flask
import antipode
from antipode.integrations import wsgi
app = Flask("shop")
antipode.instrument()
"""
FLASK_THEIRS = """
from opentelemetry.instrumentation.flask import FlaskInstrumentor
FlaskInstrumentor().instrument_app(app)
"""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "problem"),
        ("wsgi.instrument_app(app)", "ok"),
        ("antipode.setup()", "ok"),
        ("app.wsgi_app = wsgi.AntipodeMiddleware(app.wsgi_app)", "ok"),
        (FLASK_THEIRS, "ok"),
        ("@app.before_request\ndef begin():\n    pass", "cannot tell"),
    ],
)
def test_flask(tmp_path: Path, source: str, told: str) -> None:
    """As for FastAPI, through WSGI."""
    found = doctor(tmp_path, "shop:app", f"{FLASK}{source}\n")
    assert found.verdicts["requests"] == told, found.text


def test_an_application_that_is_a_function(tmp_path: Path) -> None:
    """What serves it may open scopes: nobody can tell, and no problem is made of it."""
    source = "import antipode\nantipode.setup()\ndef app(environ, start_response):\n    return []\n"
    found = doctor(tmp_path, "shop:app", source)
    assert found.verdicts.get("requests", "cannot tell") == "cannot tell", found.text
    assert found.status == 0, found.text


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "problem"),
        ("aiohttp_server.instrument_app(app)", "ok"),
        ("import antipode\nantipode.setup()", "ok"),
    ],
)
def test_aiohttp(tmp_path: Path, source: str, told: str) -> None:
    """An application of aiohttp's server keeps our middleware in its list."""
    begin = "from aiohttp import web\nfrom antipode.integrations import aiohttp_server\n"
    found = doctor(tmp_path, "shop:app", f"{begin}app = web.Application()\n{source}\n")
    assert found.verdicts["requests"] == told, found.text


DJANGO = """
import antipode
antipode.configure(barriers="auto")
SECRET_KEY = "a secret of the shop that no other site has"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop"
urlpatterns = []
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware"]
"""
SESSION = '"antipode.integrations.django.AntipodeSessionMiddleware"'
SERVED = """
from django.core.wsgi import get_wsgi_application
from antipode.integrations import wsgi
application = get_wsgi_application()
"""


FIRST = f"MIDDLEWARE = [{SESSION}, *MIDDLEWARE]"
LAST = f"MIDDLEWARE = [*MIDDLEWARE, {SESSION}]"
WRAPPED = "application = wsgi.AntipodeMiddleware(application)"


@pytest.mark.parametrize(
    ("app", "settings", "served", "told"),
    [
        *((app, "", "", "problem") for app in ("shop", "served", "served:application")),
        *((app, FIRST, "", "ok") for app in ("shop", "served", "served:application")),
        *((app, LAST, "", "cannot tell") for app in ("shop", "served:application")),
        *((app, "", WRAPPED, "ok") for app in ("served", "served:application")),
    ],
)
def test_django(tmp_path: Path, app: str, settings: str, served: str, told: str) -> None:
    """The settings decide, or what is around the application that is served."""
    (tmp_path / "served.py").write_text(SERVED + served, encoding="utf-8")
    found = doctor(tmp_path, app, f"{DJANGO}{settings}\n", DJANGO_SETTINGS_MODULE="shop")
    assert found.verdicts["requests"] == told, found.text
    assert found.verdicts["ingress"] == ("problem" if told == "problem" else "ok"), found.text


CELERY = """
from celery import Celery, signals
from antipode.integrations import celery as lineages
worker = Celery("shop", broker="memory://")
"""
AT_START = """
@signals.worker_process_init.connect
def begin(**_):
    lineages.instrument()
"""
BY_OTEL = """
import antipode
from opentelemetry.instrumentation.celery import CeleryInstrumentor
CeleryInstrumentor().instrument()
antipode.instrument()
"""


@pytest.mark.parametrize("app", ["shop:worker", "shop:app"], ids=["worker", "publisher"])
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "problem"),
        ("lineages.instrument()", "ok"),
        ("lineages.instrument()\nlineages.uninstrument()", "problem"),
        (AT_START, "cannot tell"),
        (BY_OTEL, "cannot tell"),
    ],
    ids=["forgotten", "instrumented", "undone", "at-start", "otel"],
)
def test_celery(tmp_path: Path, app: str, source: str, told: str) -> None:
    """Whether `instrument()` ran decides, in publishers as in workers."""
    served = f"{FASTAPI}asgi.instrument_app(app)\n" if app == "shop:app" else "app = None\n"
    found = doctor(tmp_path, app, f"{CELERY}{served}{source}\n")
    assert found.verdicts["tasks"] == told, found.text
    assert found.status == (told == "problem"), found.text
    assert found.verdicts.get("requests") == ("ok" if app == "shop:app" else None), found.text


def test_settings_are_shown_and_misspelt_ones_are_a_problem(tmp_path: Path) -> None:
    """Which barriers there are is said, and a variable that changes nothing is named."""
    source = f"{FASTAPI}asgi.instrument_app(app)\n"
    found = doctor(tmp_path, "shop:app", source, ANTIPODE_BARRIERS="auto")
    assert "barriers auto" in found.text
    assert found.status == 0, found.text
    found = doctor(tmp_path, "shop:app", source, ANTIPODE_BARIERS="auto", ANTIPODE_SHOP_COLOUR="7")
    assert "barriers explicit" in found.text
    assert "write ANTIPODE_BARRIERS" in found.text
    assert re.search(r"^cannot tell +settings +ANTIPODE_SHOP_COLOUR", found.text, re.MULTILINE)
    assert found.status == 1


@pytest.mark.parametrize("app", ["shop", "served:application"])
def test_the_settings_of_djangos_guide(
    tmp_path: Path, app: str, antipode_mariadb: MariaDBTopology
) -> None:
    """The guide's block has no problem, on a real primary and its replica."""
    pytest.importorskip("MySQLdb")
    guide = (ROOT / "docs/guides/django.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"```python\n(.*?)```", guide, re.DOTALL))
    databases = {
        alias: {
            "ENGINE": "django.db.backends.mysql",
            "HOST": place.host,
            "PORT": place.port,
            "NAME": "app",
            "USER": "app",
            "PASSWORD": "app",
            "ATOMIC_REQUESTS": True,
        }
        for alias, place in (
            ("default", antipode_mariadb.primary),
            ("replica", antipode_mariadb.replica),
        )
    }
    routers = "DATABASE_ROUTERS = [ReplicaRouter()]"
    settings = f"{DJANGO}DATABASES = {databases!r}\n{blocks}\n{routers}\n"
    (tmp_path / "served.py").write_text(SERVED, encoding="utf-8")
    found = doctor(tmp_path, app, settings, DJANGO_SETTINGS_MODULE="shop")
    assert (found.status, found.verdicts["ingress"]) == (0, "ok"), found.text
    assert re.search(r"^ok +shop +its replica answers", found.text, re.MULTILINE), found.text
