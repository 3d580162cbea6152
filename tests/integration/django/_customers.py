"""django-oscar's shop on a lagging replica, and customers whose browsers keep cookies."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import requests

from antipode_testing import wait_until
from tests.integration._warned import OF_SETTINGS, note_warnings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antipode_testing import MariaDBTopology

ROOT = Path(__file__).resolve().parents[3]
LAG_MS = 1_000
#: What each customer does, and looks at.
STEPS = 4
_PASSWORD = "a-password-of-72"  # noqa: S105 - of customers on loopback


class Customer:
    """Does things, and looks each time at the page that must show what was done."""

    def __init__(self, site: str, number: int) -> None:
        self._site = site
        self._browser = requests.Session()
        self._browser.trust_env = False
        self._email = f"customer{number}@example.org"
        self._number = number

        self._get("/accounts/login/")
        self._steps = [
            (self._register, self._login),
            (self._rename, self._is_renamed),
            (self._move, self._has_moved),
            (self._take, self._has_taken),
        ]
        assert len(self._steps) == STEPS

    def act(self, step: int) -> bool:
        """Do something, and look: whether the page shows it at once."""
        return self._steps[step][0]()

    def wait(self, step: int) -> None:
        """Look until the page shows what was done."""
        wait_until(self._steps[step][1], what=f"the shop to show step {step}", timeout_s=60)

    def close(self) -> None:
        """Leave."""
        self._browser.close()

    def _get(self, path: str) -> str:
        answer = self._browser.get(self._site + path, timeout=60)
        return answer.text if answer.status_code == requests.codes.ok else ""

    def _post(self, path: str, **form: str) -> None:
        """Send a form; the browser goes where it leads."""
        form["csrfmiddlewaretoken"] = self._browser.cookies["csrftoken"]
        self._browser.post(self._site + path, data=form, timeout=60)

    def _register(self) -> bool:
        form = {"email": self._email, "password1": _PASSWORD, "password2": _PASSWORD}
        named = {f"registration-{name}": value for name, value in form.items()}
        self._post("/accounts/login/", registration_submit="1", **named)
        return self._is_logged_in()

    def _login(self) -> bool:
        self._get("/accounts/login/")
        form = {"login-username": self._email, "login-password": _PASSWORD}
        self._post("/accounts/login/", login_submit="1", **form)
        return self._is_logged_in()

    def _is_logged_in(self) -> bool:
        return self._email in self._get("/accounts/profile/")

    def _rename(self) -> bool:
        name = {"first_name": f"Name{self._number}", "last_name": "Old", "email": self._email}
        self._post("/accounts/profile/edit/", **name)
        return self._is_renamed()

    def _is_renamed(self) -> bool:
        return f"Name{self._number}" in self._get("/accounts/profile/")

    def _move(self) -> bool:
        names = {"first_name": "A", "last_name": "B", "line4": "Berlin", "country": "DE"}
        line1 = f"Street {self._number}"
        self._post("/accounts/addresses/add/", line1=line1, postcode="10115", **names)
        return self._has_moved()

    def _has_moved(self) -> bool:
        return f"Street {self._number}" in self._get("/accounts/addresses/")

    def _take(self) -> bool:
        self._post("/basket/add/1/", quantity="3")
        return self._has_taken()

    def _has_taken(self) -> bool:
        return 'name="form-0-quantity" value="3"' in self._get("/basket/")


def make_tables(topology: MariaDBTopology) -> None:
    """The shop's tables on both servers; those that lag get them before they do."""
    topology.execute("ALTER DATABASE app CHARACTER SET utf8mb4")
    subprocess.run(_command(topology, "tables"), cwd=ROOT, check=True, timeout=600)
    topology.wait_replicated()


def stale_pages(
    topology: MariaDBTopology,
    what: str,
    numbers: range,
    *,
    sessions: str = "signed_cookies",
    held: bool = False,
) -> int:
    """How many pages of new customers do not show what they have just done.

    Args:
        topology: with the tables. Its replica is a second behind.
        what: how the shop is set up.
        numbers: of the customers; some of them are there at a time.
        sessions: where Django's own are.
        held: whether the replica shows nothing new before all have looked, however slow the
            machine makes their pages.
    """
    topology.set_lag(0 if held else LAG_MS)
    with _shop(topology, what, sessions) as site, ThreadPoolExecutor(8) as pool:
        customers = list(pool.map(lambda number: Customer(site, number), numbers))
        stale = 0
        for step in range(STEPS):
            if held:
                topology.pause_applier()
            shown = list(pool.map(lambda customer, step=step: customer.act(step), customers))
            if held:
                topology.resume_applier()
            late = [one for one, seen in zip(customers, shown, strict=True) if not seen]
            list(pool.map(lambda customer, step=step: customer.wait(step), late))
            stale += len(late)
        for customer in customers:
            customer.close()
        return stale


@contextmanager
def _shop(topology: MariaDBTopology, *how: str) -> Iterator[str]:
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(
            _command(topology, *how),
            cwd=ROOT,
            env=_environment(Path(folder)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()
            assert process.wait(60) == 0
            # Of how it is set up by the guide nothing is said; without the library nobody speaks.
            said = (Path(folder) / "warnings").read_text()
            assert not OF_SETTINGS.search(said), said


def _environment(folder: Path) -> dict[str, str]:
    """For a replica a second behind, and requests that write and read by turns."""
    note_warnings(folder, folder / "warnings")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "ANTIPODE_AUTO_TIMEOUT": "20", "PYTHONPATH": path}


def _command(topology: MariaDBTopology, *how: str) -> list[str]:
    places = str(topology.primary), str(topology.replica)
    return [sys.executable, "-m", "tests.integration.django._shop", *places, *how]
