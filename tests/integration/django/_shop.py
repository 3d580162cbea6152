"""django-oscar's shop on a replica, in a process of its own.

``python -m tests.integration.django._shop PRIMARY REPLICA WHAT [SESSIONS]``: ``tables`` makes the
tables and a product, and ends; ``plain`` and ``guided`` serve the shop, and print its port.
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "django.md"
#: As django-oscar's documentation says.
APPS = [
    *(f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions")),
    *(f"django.contrib.{name}" for name in ("messages", "staticfiles", "sites", "flatpages")),
    "oscar.config.Shop",
    "oscar.apps.analytics.apps.AnalyticsConfig",
    "oscar.apps.checkout.apps.CheckoutConfig",
    "oscar.apps.address.apps.AddressConfig",
    "oscar.apps.shipping.apps.ShippingConfig",
    "oscar.apps.catalogue.apps.CatalogueConfig",
    "oscar.apps.catalogue.reviews.apps.CatalogueReviewsConfig",
    "oscar.apps.communication.apps.CommunicationConfig",
    "oscar.apps.partner.apps.PartnerConfig",
    "oscar.apps.basket.apps.BasketConfig",
    "oscar.apps.payment.apps.PaymentConfig",
    "oscar.apps.offer.apps.OfferConfig",
    "oscar.apps.order.apps.OrderConfig",
    "oscar.apps.customer.apps.CustomerConfig",
    "oscar.apps.search.apps.SearchConfig",
    "oscar.apps.voucher.apps.VoucherConfig",
    "oscar.apps.wishlists.apps.WishlistsConfig",
    "oscar.apps.dashboard.apps.DashboardConfig",
    "oscar.apps.dashboard.reports.apps.ReportsDashboardConfig",
    "oscar.apps.dashboard.users.apps.UsersDashboardConfig",
    "oscar.apps.dashboard.orders.apps.OrdersDashboardConfig",
    "oscar.apps.dashboard.catalogue.apps.CatalogueDashboardConfig",
    "oscar.apps.dashboard.offers.apps.OffersDashboardConfig",
    "oscar.apps.dashboard.partners.apps.PartnersDashboardConfig",
    "oscar.apps.dashboard.pages.apps.PagesDashboardConfig",
    "oscar.apps.dashboard.ranges.apps.RangesDashboardConfig",
    "oscar.apps.dashboard.reviews.apps.ReviewsDashboardConfig",
    "oscar.apps.dashboard.vouchers.apps.VouchersDashboardConfig",
    "oscar.apps.dashboard.communications.apps.CommunicationsDashboardConfig",
    "oscar.apps.dashboard.shipping.apps.ShippingDashboardConfig",
    *("widget_tweaks", "haystack", "treebeard", "sorl.thumbnail", "django_tables2"),
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
]
CONTEXT_PROCESSORS = [
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
    "oscar.apps.search.context_processors.search_form",
    "oscar.apps.checkout.context_processors.checkout",
    "oscar.apps.communication.notifications.context_processors.notifications",
    "oscar.core.context_processors.metadata",
]


class Replica:
    """As Django's documentation has it."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "replica"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        return True


class WithoutMigrations:
    """Tables are made of the models as they are: to make them of migrations takes a minute."""

    def __contains__(self, app: str) -> bool:
        return True

    def __getitem__(self, app: str) -> None:
        return None


def database(place: str) -> dict[str, Any]:
    """A database of the topology."""
    host, _, port = place.rpartition(":")
    engine = "django.db.backends.mysql"
    account = {"NAME": "app", "USER": "app", "PASSWORD": "app"}
    return {"ENGINE": engine, "HOST": host, "PORT": port, **account}


def configure(primary: str, replica: str, what: str, sessions: str) -> None:
    """The settings of the shop; ``guided`` with what the guide adds."""
    import oscar.defaults
    from django.conf import settings

    shop = {name: getattr(oscar.defaults, name) for name in dir(oscar.defaults) if name.isupper()}
    haystack = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
    templates = {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": CONTEXT_PROCESSORS},
    }
    given: dict[str, Any] = {
        "ALLOWED_HOSTS": ["*"],
        "AUTHENTICATION_BACKENDS": ["oscar.apps.customer.auth_backends.EmailBackend"],
        "DATABASES": {"default": database(primary), "replica": database(replica)},
        "DATABASE_ROUTERS": [Replica()],
        "DEFAULT_AUTO_FIELD": "django.db.models.AutoField",
        "EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend",
        "HAYSTACK_CONNECTIONS": haystack,
        "INSTALLED_APPS": APPS,
        "LOGGING_CONFIG": None,
        "MIDDLEWARE": MIDDLEWARE,
        "MIGRATION_MODULES": WithoutMigrations(),
        # What hashes well takes most of the time of a test.
        "PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"],
        "ROOT_URLCONF": urls(),
        "SECRET_KEY": "a secret of the shop that no other site has",
        "SESSION_ENGINE": f"django.contrib.sessions.backends.{sessions}",
        "SILENCED_SYSTEM_CHECKS": ["fields.W342"],
        "SITE_ID": 1,
        "STATIC_URL": "static/",
        "TEMPLATES": [templates],
    }
    if what == "tables":
        given["DATABASE_ROUTERS"] = []
    if what == "guided":
        names = guided(**given)
        given |= {name: value for name, value in names.items() if name.isupper()}
    settings.configure(**{**shop, **given})


def guided(**names: Any) -> dict[str, Any]:
    """What the guide's blocks make of settings."""
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(GUIDE), "exec"), names)  # noqa: S102 - the guide's own example
    return names


def urls() -> Any:
    """The shop below ``/``, resolved when it is asked for: its applications load first."""

    class Urls(ModuleType):
        @property
        def urlpatterns(self) -> list[Any]:
            from django.apps import apps
            from django.urls import include, path

            shop = [path("", include(apps.get_app_config("oscar").urls[0]))]
            return [path("i18n/", include("django.conf.urls.i18n")), *shop]

    sys.modules["oscar_site_urls"] = Urls("oscar_site_urls")
    return "oscar_site_urls"


def make_tables() -> None:
    """The tables, and what a shop cannot be without."""
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0, interactive=False)
    from django.contrib.sites.models import Site
    from oscar.apps.address.models import Country
    from oscar.test.factories import create_product

    Site.objects.get_or_create(id=1, defaults={"domain": "shop", "name": "shop"})
    create_product(title="A clock", num_in_stock=100_000)
    Country.objects.create(iso_3166_1_a2="DE", printable_name="DE", is_shipping_country=True)


def main(primary: str, replica: str, what: str, sessions: str = "db") -> None:
    """Make tables, or serve until the input ends."""
    configure(primary, replica, what, sessions)
    import django

    django.setup()
    if what == "tables":
        make_tables()
        return
    from django.core.wsgi import get_wsgi_application
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - as it is named
            """Nothing is printed."""

    application = get_wsgi_application()
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.shutdown()
    thread.join()
    server.server_close()


if __name__ == "__main__":
    main(*sys.argv[1:])
