"""The wheel has what the README says, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from tests.integration.mysql._servers import prepare

from ._extras import ROOT, environment, wheel, works

if TYPE_CHECKING:
    from pathlib import Path

    from antipode_testing import MySQLTopology, RedisTopology

__all__ = ["wheel"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: What the README has its readers install.
ALL = "redis,mysql,mongodb,rabbitmq"


def test_the_library_comes_without_servers(wheel: Path) -> None:
    """Its wheel holds the core, the shims and the program: what starts servers is another's."""
    with ZipFile(wheel) as archive:
        packages = {name.partition("/")[0] for name in archive.namelist()}
    assert {name for name in packages if not name.endswith(".dist-info")} == {
        *("antipode", "antipode_cli", "antipode_shims")
    }


@pytest.mark.store("mysql")
@pytest.mark.store("redis")
def test_the_install_line_of_the_readme(
    wheel: Path, antipode_mysql: MySQLTopology, antipode_redis: RedisTopology, tmp_path: Path
) -> None:
    """All stores at once, as the README says, and two of them write."""
    assert f'pip install "antipode-xcy[{ALL}]"' in (ROOT / "README.md").read_text(encoding="utf-8")
    prepare(antipode_mysql)
    python = environment(tmp_path, f"{wheel}[{ALL}]")
    works(python, "mysql", antipode_mysql.url())
    works(python, "redis", antipode_redis.url())
