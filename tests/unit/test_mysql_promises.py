"""What is said to the table of promises on MySQL and MariaDB, and what answers mean: no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from antipode import ConfigurationError, Promise, Status
from antipode_shims.mysql import promises_ddl
from antipode_shims.mysql._position.flavor import Ask, Flavor, Refused, converse
from antipode_shims.mysql._promises.records import (
    Records,
    check_name,
    explained,
    place,
    promises_missing,
    recording,
    records,
    sweeping,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = Promise("posts", "00112233445566778899aabbccddeeff", 4_000_000_000)
TWO = Promise("posts", "ffeeddccbbaa99887766554433221100", 4_000_000_000)
BOTH = Flavor.MYSQL, Flavor.MARIADB


def row(promise: Promise, fulfilled: object = 1, level: str = "REPEATABLE-READ") -> dict[str, Any]:
    """As a client decodes it."""
    return {"id": promise.id.upper(), "fulfilled": fulfilled, "level": level}


def look(answer: Callable[[str], Any], flavor: Flavor = Flavor.MYSQL, **options: Any) -> Records:
    """One look for both promises at a server that answers so."""
    steps = records("app.antipode_promises", [ONE, TWO], flavor, **options)
    return converse(steps, lambda ask: answer(ask.sql))


@pytest.mark.parametrize("true", [1, b"1", "1", True])
def test_records_say_what_became_of_promises(true: object) -> None:
    """However the client decodes a number; one without a record is left out."""
    found = look(lambda _: [row(ONE, true)])
    assert found.statuses == {ONE: Status.VISIBLE}
    assert look(lambda _: [row(TWO, 0)]).statuses == {TWO: Status.ABANDONED}
    assert not look(lambda _: []).statuses
    assert not found.causes([ONE, TWO])


@pytest.mark.parametrize("flavor", BOTH)
@pytest.mark.parametrize("unsure", [False, True])
def test_what_may_be_dirty_is_asked_for_again_with_a_lock(flavor: Flavor, unsure: bool) -> None:  # noqa: FBT001 - a parameter
    """And only that: who sees committed rows alone locks nothing, who sees none neither."""
    level = "REPEATABLE-READ" if unsure else "READ-UNCOMMITTED"
    asked: list[str] = []

    def answer(sql: str) -> Any:
        asked.append(sql)
        return [] if sql.endswith("NOWAIT") else [row(ONE, 1, level)]

    assert not look(answer, flavor, unsure=unsure).statuses
    assert len(asked) == 2
    assert not look(lambda _: [], flavor, unsure=unsure).statuses
    assert look(lambda _: [row(ONE)], flavor).statuses == {ONE: Status.VISIBLE}


@pytest.mark.parametrize(
    ("number", "cause"),
    [(1146, "migration --promises"), (1049, "migration --promises"), (3572, "not committed")],
)
def test_a_refusal_that_passes_is_a_cause(number: int, cause: str) -> None:
    """No table yet, or somebody's lock: the promise is late, and the outcome says why."""

    def answer(_: str) -> Any:
        raise Refused("no", number=number)

    found = look(answer)
    assert not found.statuses
    assert all(cause in why for why in found.causes([ONE, TWO]).values())
    assert set(found.causes([ONE, TWO])) == {ONE, TWO}


@pytest.mark.parametrize(("number", "error"), [(1142, ConfigurationError), (1064, Refused)])
def test_a_refusal_that_stays_is_raised(number: int, error: type[Exception]) -> None:
    """A missing privilege names the grant; anything else is as the server said it."""

    def answer(_: str) -> Any:
        raise Refused("no", number=number)

    with pytest.raises(error):
        look(answer)


def test_the_first_record_stays() -> None:
    """A statement changes a row that is there only where that says the opposite."""
    fulfilled, abandoned = (recording("t", ONE, fulfilled=each) for each in (True, False))
    assert "TRUE" in fulfilled
    assert fulfilled.endswith("refused = refused ^ (NOT fulfilled)")
    assert "FALSE" in abandoned
    assert abandoned.endswith("refused = refused ^ fulfilled")
    assert f"X'{ONE.id}'" in fulfilled


def test_where_the_table_is() -> None:
    """In the client's database, unless its name says another; unknown without either."""
    assert place("antipode_promises", "app") == "app.antipode_promises"
    assert place("shared.kept", "app") == "shared.kept"
    assert not place("antipode_promises", "")
    assert promises_ddl("a`b.c")[0].startswith("CREATE TABLE IF NOT EXISTS `a``b`.`c` (")


@pytest.mark.parametrize("name", ["", "a.b.c", "a.", ".b", "50%"])
def test_what_is_no_name_is_refused(name: str) -> None:
    """Before anything is asked."""
    with pytest.raises(ConfigurationError, match="promise_table"):
        check_name(name)


def test_errors_of_writers_are_explained() -> None:
    """A missing table by the command, a missing privilege by the privileges; nothing else is."""
    assert "migration --promises" in str(explained("posts", "t", 1146, ""))
    assert "INSERT" in str(explained("posts", "t", 1142, ""))
    assert explained("posts", "t", 1213, "") is None


def test_a_sweep_deletes_rows_one_by_one() -> None:
    """Found without waiting for anybody, and all in one transaction of the library's own."""
    said: list[str] = []

    def answer(ask: Ask) -> Any:
        said.append(ask.sql)
        return [{"id": "AA"}, {"id": "BB"}] if ask.sql.startswith("SELECT") else []

    converse(sweeping("t"), answer)
    assert [each.split()[0] for each in said] == [
        "SET",
        "START",
        "SELECT",
        "DELETE",
        "DELETE",
        "COMMIT",
    ]
    assert said[2].endswith("SKIP LOCKED")


@pytest.mark.parametrize("present", [True, False])
def test_the_check_wants_each_column(present: bool) -> None:  # noqa: FBT001 - a parameter
    """One that is missing is told."""
    names = ["ID", "fulfilled", "refused", *(["until_s"] if present else [])]
    found = converse(promises_missing("t"), lambda _: [{"name": name} for name in names])
    assert found is not present
