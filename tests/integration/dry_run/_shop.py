"""A Django project whose application is installed as a package: run by test_installed.py.

The arguments are the folder with the package and the one for the records. This file is all that
the project has itself.
"""

from __future__ import annotations

import sys

import django
from django.conf import settings
from django.test import Client

import antipode

site, records = sys.argv[1:]
sys.path.insert(0, site)
settings.configure(ROOT_URLCONF="oscar.urls", ALLOWED_HOSTS=["*"], SECRET_KEY="-")  # noqa: S106
django.setup()
antipode.configure(mode="dry-run", dry_run_dir=records)
client = Client()
with antipode.scope():
    for path in ("/save", "/show", "/offers"):
        assert client.get(path).status_code == 200
