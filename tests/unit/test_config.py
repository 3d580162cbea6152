"""Settings: by call, by environment, by default; a mistake is one clear line."""

from __future__ import annotations

from datetime import timedelta

import pytest

import antipode
from antipode._runtime import config as _config


def test_the_defaults_are_the_documented_ones() -> None:
    """What a service gets that configures nothing."""
    settings = antipode.shim.config()
    assert settings == antipode.shim.Config()
    assert (settings.mode, settings.max_timeout, settings.max_lineage_bytes) == (
        "enforce",
        30.0,
        1024,
    )
    assert settings.horizon == settings.max_promise == timedelta(days=7)


def test_every_setting_is_also_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """``ANTIPODE_<NAME>`` sets each of them, without a change to code."""
    given = {
        "MODE": "off",
        "REGION": "eu",
        "MAX_TIMEOUT": "2.5",
        "MAX_LINEAGE_BYTES": "512",
        "HORIZON": "12h",
        "MAX_PROMISE": "2d",
        "ON_UNKNOWN": "report",
        "ON_INCOMPLETE": "report",
        "ON_UNSCOPED": "raise",
        "APP_PACKAGES": "oscar, shop.views",
        "EGRESS": "posts, users",
        "EGRESS_HOSTS": "posts.internal, *.eu.internal",
        "PEERS": "posts.internal/v=1=always, *.eu.internal = never",
    }
    for name, text in given.items():
        monkeypatch.setenv(f"ANTIPODE_{name}", text)
    _config.reset_config()
    assert antipode.shim.config() == antipode.shim.Config(
        mode="off",
        region="eu",
        max_timeout=2.5,
        max_lineage_bytes=512,
        horizon=timedelta(hours=12),
        max_promise=timedelta(days=2),
        on_unknown="report",
        on_incomplete="report",
        on_unscoped="raise",
        app_packages=frozenset({"oscar", "shop.views"}),
        egress=frozenset({"posts", "users"}),
        egress_hosts=frozenset({"posts.internal", "*.eu.internal"}),
        peers=(("*.eu.internal", "never"), ("posts.internal/v=1", "always")),
    )


def test_a_call_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What code states explicitly holds; the rest still comes from the environment."""
    monkeypatch.setenv("ANTIPODE_MAX_TIMEOUT", "2")
    monkeypatch.setenv("ANTIPODE_REGION", "eu")
    _config.reset_config()
    antipode.configure(max_timeout=3)
    assert (antipode.shim.config().max_timeout, antipode.shim.config().region) == (3, "eu")


def test_configure_changes_only_what_it_is_given() -> None:
    """Two calls add up."""
    antipode.configure(region="eu")
    antipode.configure(max_timeout=3)
    assert (antipode.shim.config().max_timeout, antipode.shim.config().region) == (3, "eu")


@pytest.mark.parametrize(
    ("options", "variable"),
    [
        ({"mode": "maybe"}, "ANTIPODE_MODE"),
        ({"max_timeout": 0}, "ANTIPODE_MAX_TIMEOUT"),
        ({"max_timeout": "3"}, "ANTIPODE_MAX_TIMEOUT"),
        ({"max_lineage_bytes": 10}, "ANTIPODE_MAX_LINEAGE_BYTES"),
        ({"max_lineage_bytes": 5000}, "ANTIPODE_MAX_LINEAGE_BYTES"),
        ({"horizon": 7}, "ANTIPODE_HORIZON"),
        ({"max_promise": timedelta(0)}, "ANTIPODE_MAX_PROMISE"),
        ({"on_unknown": "pass"}, "ANTIPODE_ON_UNKNOWN"),
        ({"egress": "posts"}, "ANTIPODE_EGRESS"),
        ({"peers": {"posts.internal": "maybe"}}, "ANTIPODE_PEERS"),
        ({"peers": {"http://posts.internal": "always"}}, "ANTIPODE_PEERS"),
        ({"peers": {"/orders": "always"}}, "ANTIPODE_PEERS"),
        ({"peers": {"posts.internal/a?b": "always"}}, "ANTIPODE_PEERS"),
        ({"peers": {1: "always"}}, "ANTIPODE_PEERS"),
        ({"peers": "posts.internal"}, "ANTIPODE_PEERS"),
    ],
)
def test_a_wrong_value_is_refused_with_its_names(options: dict[str, object], variable: str) -> None:
    """The error names the setting, its variable and what it takes; the old settings stay."""
    with pytest.raises(antipode.ConfigurationError, match=variable):
        antipode.configure(**options)  # type: ignore[arg-type]
    assert antipode.shim.config() == antipode.shim.Config()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MAX_TIMEOUT", "soon"),
        ("HORIZON", "a week"),
        ("MODE", "maybe"),
        ("HORIZON", "0"),
        ("PEERS", "posts"),
    ],
)
def test_a_wrong_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    """A typing error in a deployment fails at the first use, not in silence."""
    monkeypatch.setenv(f"ANTIPODE_{name}", text)
    _config.reset_config()
    with pytest.raises(antipode.ConfigurationError, match=f"ANTIPODE_{name}"):
        antipode.shim.config()
