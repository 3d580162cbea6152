"""The client libraries: imported when they are needed, named when they are missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from antipode import ConfigurationError
from antipode_shims import rabbitmq


def test_importing_the_shim_imports_no_client() -> None:
    """``import antipode_shims.rabbitmq`` costs no client library."""
    code = (
        "import sys, opentelemetry.baggage, opentelemetry.context\n"
        "brought = set(sys.modules)  # old releases bring asyncio\n"
        "import antipode_shims.rabbitmq\n"
        "print(*{'pika', 'aio_pika', 'aiormq', 'asyncio'} & (sys.modules.keys() - brought))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == ""


def test_a_missing_client_is_an_error_that_names_the_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without pika the Table 2 face says what to run."""
    monkeypatch.setitem(sys.modules, "pika", None)
    with pytest.raises(ConfigurationError, match=r'pip install "antipode-xcy\[rabbitmq\]"'):
        rabbitmq.shim("news", "amqp://guest@localhost/")


def test_a_url_that_is_malformed_does_not_show_its_password() -> None:
    """The error says what a URL looks like, and repeats none of it."""
    pytest.importorskip("pika")
    with pytest.raises(ConfigurationError, match="amqp://") as caught:
        rabbitmq.shim("news", "amqp://user:secret@[broken")
    assert "secret" not in str(caught.value)


def test_the_public_names() -> None:
    """What the package offers is what it lists, and each is documented."""
    assert sorted(rabbitmq.__all__) == rabbitmq.__all__
    for name in rabbitmq.__all__:
        assert getattr(rabbitmq, name).__doc__
