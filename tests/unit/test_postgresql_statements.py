"""What a statement of PostgreSQL's may do, by its text: the vectors of level S2 hold the rest."""

from __future__ import annotations

from antipode_shims.postgresql._statements import meaning


def test_texts_in_dollars_may_follow_each_other() -> None:
    """What lies in the second one is no word of the statement's."""
    hidden = meaning("SELECT $a$ INSERT $a$$b$ DELETE secret( $b$")
    assert hidden == meaning("SELECT ''")
    assert hidden != meaning("SELECT secret()")
