"""The pytest plugin: a missing server is a skip that says what to install, or a failure."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from antipode_testing import _provider, plugin

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]

USES_REDIS = """
def test_one(antipode_redis): pass
def test_two(antipode_redis): pass
def test_other(): pass
"""
FAKE_TOPOLOGY = """
import antipode_testing.servers.redis.topology as module

class FakeTopology:
    def __init__(self):
        self.closed, self.lag, self.log = True, 0, open("log.txt", "a")
    def start(self):
        self.closed = False
        print("start", file=self.log, flush=True)
    def reset(self):
        self.lag = 0
        print("reset", file=self.log, flush=True)
    def close(self):
        self.closed = True
        print("close", file=self.log, flush=True)
        self.log.close()

module.RedisTopology = FakeTopology
"""


@pytest.fixture
def no_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which no server is installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("antipode_testing._process.SERVER_DIRECTORIES", ())
    monkeypatch.delenv("ANTIPODE_REQUIRE_STORES", raising=False)


@pytest.mark.usefixtures("no_servers")
def test_a_missing_server_is_a_skip_with_the_reason(pytester: pytest.Pytester) -> None:
    """Each test that needs it is skipped, the others run, and the reason names the package."""
    pytester.makepyfile(USES_REDIS)
    result = pytester.runpytest_inprocess("-rs", "-p", "no:asyncio")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*redis-server*apt-get install redis-server*"])
    result.stdout.fnmatch_lines(["antipode store skipped: redis (*redis-server*)"])


@pytest.mark.usefixtures("no_servers")
def test_a_missing_required_server_is_a_failure(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name in ANTIPODE_REQUIRE_STORES the same tests end the run with an error."""
    monkeypatch.setenv("ANTIPODE_REQUIRE_STORES", "rabbitmq, redis")
    pytester.makepyfile(USES_REDIS)
    result = pytester.runpytest_inprocess("-p", "no:asyncio")
    result.assert_outcomes(passed=1, errors=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*apt-get install redis-server*ANTIPODE_REQUIRE_STORES*"])
    result.stdout.fnmatch_lines(["antipode store missing, though required: redis*"])


@pytest.mark.usefixtures("no_servers")
def test_requiring_another_store_leaves_the_skip(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the stores that are named must be there."""
    monkeypatch.setenv("ANTIPODE_REQUIRE_STORES", "rabbitmq")
    pytester.makepyfile(USES_REDIS)
    pytester.runpytest_inprocess("-p", "no:asyncio").assert_outcomes(passed=1, skipped=2)


@pytest.mark.usefixtures("no_servers")
def test_a_missing_broker_names_its_package(pytester: pytest.Pytester) -> None:
    """The same holds for RabbitMQ."""
    pytester.makepyfile("def test_one(antipode_rabbitmq): pass")
    result = pytester.runpytest_inprocess("-rs", "-p", "no:asyncio")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*apt-get install rabbitmq-server*"])


@pytest.mark.usefixtures("no_servers")
def test_a_missing_mongod_says_where_to_get_one(pytester: pytest.Pytester) -> None:
    """Debian has no package of it: the reason names our own verb and MongoDB's package."""
    pytester.makepyfile("def test_one(antipode_mongodb): pass")
    result = pytester.runpytest_inprocess("-rs", "-p", "no:asyncio")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*make stores STORES=mongodb*mongodb-org-server*"])


def test_a_missing_client_names_the_extra(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without redis-py the reason is the pip install that brings it."""
    monkeypatch.delenv("ANTIPODE_REQUIRE_STORES", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    pytester.makepyfile(USES_REDIS)
    result = pytester.runpytest_inprocess("-rs", "-p", "no:asyncio")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*pip install antipode-xcy[[]redis[]]*"])


def test_an_unknown_store_is_a_usage_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt name would require nothing, so it ends the run before it begins."""
    monkeypatch.setenv("ANTIPODE_REQUIRE_STORES", "redis,rabitmq")
    pytester.makepyfile("def test_one(): pass")
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*ANTIPODE_REQUIRE_STORES*rabitmq*embedded, *rabbitmq, redis*"])


def test_one_topology_serves_the_session_and_is_healed_after_each_test(
    pytester: pytest.Pytester,
) -> None:
    """It is started once, reset when a test ends, also a failed one, and closed at the end."""
    pytester.makeconftest(FAKE_TOPOLOGY)
    pytester.makepyfile(
        """
        def test_before(): pass
        def test_faults(antipode_redis):
            antipode_redis.lag = 60_000
            raise ValueError
        def test_by_name(request):
            assert request.getfixturevalue("antipode_redis").lag == 0
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:asyncio")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["antipode stores used: redis"])
    log = (pytester.path / "log.txt").read_text().split()
    assert (log[0], log[-1], log.count("start"), log.count("close")) == ("start", "close", 1, 1)
    assert log.count("reset") >= 1


def test_the_summary_is_complete_under_xdist(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What worker processes skipped is told by the process that prints."""
    pytest.importorskip("xdist")
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delenv("ANTIPODE_REQUIRE_STORES", raising=False)
    pytester.makeconftest("import sys; sys.modules['redis'] = None")
    pytester.makepyfile(USES_REDIS)
    result = pytester.runpytest_subprocess("-n", "1", "-p", "no:asyncio")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["antipode store skipped: redis*"])


def test_the_plugin_costs_a_run_without_stores_nothing() -> None:
    """Loading it imports nothing of Antipode, and nothing else that pytest has not."""
    code = (
        "import sys, pytest; before = set(sys.modules); import antipode_testing.plugin;"
        " print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(["antipode_testing", "antipode_testing.plugin"])


def test_the_plugin_and_the_topologies_read_one_variable() -> None:
    """The plugin knows by its name alone whether a provider is asked for."""
    assert plugin.PROVIDER_VARIABLE == _provider.VARIABLE
