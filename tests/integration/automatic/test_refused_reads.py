"""Reads of Redis that an automatic barrier lets go, and that their server refuses, by language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ._refused import judge

if TYPE_CHECKING:
    from antipode_testing import RedisTopology
    from tests.agent.lending import Lend

pytestmark = [pytest.mark.slow, pytest.mark.store("redis")]

#: Of each language.
LIBRARIES = {"python": (None,), "java": ("lettuce", "jedis"), "cpp": (None,)}


@pytest.mark.parametrize("language", LIBRARIES)
def test_a_read_that_is_refused_is_not_counted(
    antipode_redis: RedisTopology, language: str, lend: Lend
) -> None:
    """A read that raises is served to nobody, by Table 2 and by instrumented clients."""
    remote = lend(language)
    judge("redis", antipode_redis, remote)
    for library in LIBRARIES[language]:
        judge("redis", antipode_redis, remote, client=True, library=library)
