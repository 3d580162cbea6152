"""A Django application that instruments the project's databases, by settings alone.

``antipode_shims.mysql.django.AntipodeConfig`` in ``INSTALLED_APPS`` takes them from
``ANTIPODE_DATABASES``: docs/guides/django.md.
"""

from __future__ import annotations

from typing import Any

from antipode import ConfigurationError

from . import instrument_django

try:
    from django.apps import AppConfig
    from django.conf import settings
except ModuleNotFoundError as error:
    _MESSAGE = f"{__name__} needs pip install Django"
    raise ModuleNotFoundError(_MESSAGE) from error

__all__ = ["AntipodeConfig"]


def __dir__() -> list[str]:
    return __all__


class AntipodeConfig(AppConfig):  # type: ignore[misc] # Django has no annotations
    """Instruments each alias of ``ANTIPODE_DATABASES`` as :func:`instrument_django` does."""

    name = __name__
    label = "antipode"
    verbose_name = "Antipode"

    def ready(self) -> None:
        """Instrument them, once the project's applications are loaded."""
        named: dict[str, dict[str, Any]] = getattr(settings, "ANTIPODE_DATABASES", {})
        if not named:
            msg = f"{__name__} is installed, and ANTIPODE_DATABASES names no database"
            raise ConfigurationError(msg)
        for alias, options in named.items():
            instrument_django(alias, **options)
