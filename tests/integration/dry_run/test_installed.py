"""A dry run of an application that is installed as a package, as django-oscar is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from antipode_cli.report import load, report

URLS = """
from django.urls import path

from . import views

urlpatterns = [
    path("save", views.save), path("show", views.show), path("offers", views.Offers.as_view()),
]
"""
VIEWS = """
from django.http import HttpResponse
from django.views import View

from antipode import WriteId
from antipode.shim import floor, record_write, register
from antipode_testing import FakeStore, VirtualClock

from . import models

store = FakeStore("posts", VirtualClock(), reads_from="replica")
register(store)


def save(request):
    record_write(WriteId("posts", "log", 1, 500_000))
    return HttpResponse()


def show(request):
    models.find(store)
    return HttpResponse()


class Offers(View):
    def get(self, request):
        floor(store)
        return HttpResponse()
"""
MODELS = """
from antipode.shim import floor


def find(store):
    return floor(store)
"""


def test_each_place_is_the_applications(tmp_path: Path) -> None:
    """Each read has its finding, by its own line, not one for all by that of who drives Django."""
    site, records = tmp_path / "site-packages", tmp_path / "records"
    package = site / "oscar"
    package.mkdir(parents=True)
    files = {"__init__": "", "urls": URLS, "views": VIEWS, "models": MODELS}
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    program = [sys.executable, "-m", "tests.integration.dry_run._shop", str(site), str(records)]
    subprocess.run(program, check=True, timeout=60)
    found = report(load([records]))
    places = {
        (Path(place.file).name, place.function)
        for finding in found.findings
        for place in (finding.write, finding.read)
    }
    assert places == {("views.py", "save"), ("models.py", "find"), ("views.py", "get")}
    assert {finding.advice.before.function for finding in found.findings} <= {"find", "get"}
