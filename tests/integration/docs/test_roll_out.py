"""The middleware of the page about roll-outs chooses users, and the same ones each time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from antipode._barrier.automatic import chosen

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "roll-out.md"


def test_a_share_of_the_users_waits() -> None:
    """About as many as it says; whoever is chosen is chosen for each of his requests."""
    code = PAGE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - the code that the page shows
    client: Any = SimpleNamespace(barriers=None)
    seen: list[bool] = []
    app = names["Rollout"](lambda environ, start_response: seen.append(chosen(client)))
    users = [f"user-{number}" for number in range(2_000)]
    for user in (*users, *users):
        app({"HTTP_X_USER": user}, None)
    assert seen[:2_000] == seen[2_000:]
    assert 0.03 < sum(seen) / len(seen) < 0.07
