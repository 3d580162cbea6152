"""A Django project on a standby, in a process that has nothing but it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antipode_testing import PostgreSQLTopology

#: Settings are made once in a process: hence one of its own. With a fourth argument the project has
#: the settings of the guide, without it has none of ours.
PROGRAM = """
import json
import sys
import time

import django
from django.conf import settings

primary, standby, requests = sys.argv[1], sys.argv[2], int(sys.argv[3])
covered = len(sys.argv) > 4

def database(place):
    host, _, port = place.rpartition(":")
    return {"ENGINE": "django.db.backends.postgresql", "NAME": "app", "USER": "app",
            "PASSWORD": "app", "HOST": host, "PORT": port}

class Router:
    def db_for_read(self, model, **hints):
        return "replica"

    def db_for_write(self, model, **hints):
        return "default"

    def allow_relation(self, obj1, obj2, **hints):
        return True

def page(request):
    if request.method == "POST":
        note, created = Note.objects.using("default").get_or_create(id=1)
        note.body = request.POST["body"]
        note.save()
        return HttpResponse("saved")
    return HttpResponse(Note.objects.get(id=1).body)

ours = {}
if covered:
    import antipode
    antipode.configure(barriers="auto", auto_timeout=15)
    ours = {
        "INSTALLED_APPS": ["antipode_shims.postgresql.django.AntipodeConfig"],
        "MIDDLEWARE": ["antipode.integrations.django.AntipodeSessionMiddleware"],
        "ANTIPODE_DATABASES": {
            "default": {"datastore": "shop"},
            "replica": {"datastore": "shop", "reads_from": "replica"},
        },
    }
settings.configure(
    DATABASES={"default": database(primary), "replica": database(standby)},
    DATABASE_ROUTERS=[Router()], ROOT_URLCONF="__main__", SECRET_KEY="k" * 50,
    ALLOWED_HOSTS=["*"], **ours)
django.setup()

from django.db import connections, models
from django.http import HttpResponse
from django.test import Client
from django.urls import path

class Note(models.Model):
    id = models.IntegerField(primary_key=True)
    body = models.TextField()

    class Meta:
        app_label = "notes"
        db_table = "notes"

urlpatterns = [path("", page)]
stale, waited_s = 0, 0.0
for number in range(requests):
    browser = Client()
    assert browser.post("/", {"body": str(number)}).content == b"saved"
    began_s = time.monotonic()
    stale += browser.get("/").content != str(number).encode()
    waited_s += time.monotonic() - began_s
counts = {}
if covered:
    counts = {name.name: n for name, n in antipode.telemetry.metrics().items()}
connections.close_all()
print(json.dumps({"stale": stale, "counts": counts, "mean_s": waited_s / requests}))
"""


def pages(topology: PostgreSQLTopology, requests: int, *, covered: bool) -> dict[str, Any]:
    """Save a form and read the page after it, *requests* times; how many pages were stale."""
    places = [str(topology.primary), str(topology.replica)]
    options = ["covered"] if covered else []
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *places, str(requests), *options],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    result: dict[str, Any] = json.loads(found.stdout)
    return result


def prepare(topology: PostgreSQLTopology) -> None:
    """Make the table of notes, with the one that pages are about, and replicate it."""
    topology.execute("DROP TABLE IF EXISTS notes")
    topology.execute("CREATE TABLE notes (id int PRIMARY KEY, body text NOT NULL)")
    topology.execute("INSERT INTO notes VALUES (1, '')")
    topology.execute(f"ALTER TABLE notes OWNER TO {topology.user}")
    topology.wait_replicated()
