"""What stands between a client and several servers, as a deployment's proxies do."""

from __future__ import annotations

import itertools
import re
import socketserver
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pymysql

from antipode_testing import Address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Self

    from antipode_testing import MariaDBTopology, MySQLTopology

SESSION_TRACK = 1 << 23
#: What the proxy offers: neither TLS nor compression, for it reads what passes.
_CAPABILITIES = (
    0x0001 | 0x0002 | 0x0004 | 0x0008 | 0x0200 | 0x2000 | 0x8000 | 0x10000 | 0x20000 | 0x80000
)
_IN_TRANSACTION, _MORE_RESULTS = 1, 8
_QUIT, _QUERY = 1, 3
_OK = b"\x00\x00\x00\x02\x00\x00\x00"
_ERROR, _EOF, _EOF_BELOW = 0xFF, 0xFE, 9
_READ = re.compile(r"\s*SELECT\b(?!.*\bFOR UPDATE\b)", re.IGNORECASE | re.DOTALL)
_SHOW = re.compile(r"\s*SHOW\b", re.IGNORECASE)
#: What a proxy can keep in step on all servers of a session: one variable and a literal.
_SETTING = re.compile(r"\s*SET\s+(?:SESSION\s+)?\w+\s*:?=\s*(?:'[^']*'|\w+)\s*$", re.IGNORECASE)
#: What ProxySQL answers itself, with the number that it gave the client.
_NUMBER = re.compile(r"SELECT CONNECTION_ID\(\)$", re.IGNORECASE)
_NAMES = re.compile(r"\s*SET\s+NAMES\b", re.IGNORECASE)


def by_reads(sql: str) -> str:
    """The usual rules of read and write splitting."""
    return "read" if _READ.match(sql) else "write"


def by_reads_and_shows(sql: str) -> str:
    """The same, where SHOW counts as a read."""
    return "read" if _READ.match(sql) or _SHOW.match(sql) else "write"


def by_table(sql: str) -> str:
    """A rule for the queries of one table, as ProxySQL's documentation recommends."""
    return (
        "read"
        if re.match(r"\s*SELECT\b.*\bFROM notes\b", sql, re.IGNORECASE | re.DOTALL)
        else "write"
    )


def by_comment(sql: str) -> str:
    """A rule for what the application marks."""
    return "read" if "/* ro */" in sql else "write"


def by_plain_reads(sql: str) -> str:
    """A rule for queries that name neither variables nor functions."""
    return "read" if _READ.match(sql) and not re.search(r"@@|\(", sql) else "write"


def to_readers(sql: str) -> str:
    """What a user of the readers gets, whatever it sends."""
    del sql
    return "read"


def to_writers(sql: str) -> str:
    """What a user of the writers gets, whatever it sends."""
    del sql
    return "write"


class StatementProxy:
    """A proxy that routes statement by statement, as ProxySQL does.

    *rule* names the group of servers that a statement goes to. Within a group each statement goes
    to the next server, until one names a ``@@`` variable: from then on the session stays with
    that server of the group. So does an open transaction. Replies bring MySQL's GTIDs, and
    nothing of MariaDB's session tracking. It gives each client a number of its own, and answers
    `SELECT CONNECTION_ID()` itself, with that. With *locks*, a SET that is more than a variable and
    a literal binds the session to its group, and statements for another group are refused.
    """

    def __init__(
        self,
        topology: MySQLTopology | MariaDBTopology,
        rule: Callable[[str], str],
        groups: Mapping[str, tuple[Address, ...]] | None = None,
        *,
        locks: bool = False,
    ) -> None:
        self.topology = topology
        self.rule = rule
        self.locks = locks
        chosen = groups or {"write": (topology.primary,), "read": (topology.replica,)}
        self.turns: dict[str, Iterator[Address]] = {
            name: itertools.cycle(servers) for name, servers in chosen.items()
        }
        self._server = _Server(("127.0.0.1", 0), _Session)
        self._server.proxy = self
        self.numbers = itertools.count(1_000_000)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def address(self) -> Address:
        """Where clients connect."""
        return Address(*self._server.server_address)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    proxy: StatementProxy


class _Session(socketserver.StreamRequestHandler):
    """One client, and its connections to the servers."""

    server: _Server

    def setup(self) -> None:
        super().setup()
        self.proxy = self.server.proxy
        self.servers: dict[Address, Any] = {}
        self.pinned: dict[str, Address] = {}
        self.settings: list[bytes] = []
        self.open: Address | None = None
        self.locked: str | None = None

    def handle(self) -> None:
        with suppress(OSError, EOFError):
            self._greet()
            while (command := _packet(self.rfile))[4] != _QUIT:
                self._answer(command)

    def finish(self) -> None:
        for connection in self.servers.values():
            connection._force_close()
        super().finish()

    def _greet(self) -> None:
        topology = self.proxy.topology
        mariadb = topology.store == "mariadb"
        version = b"10.11.0-MariaDB" if mariadb else b"8.0.30"
        offered = _CAPABILITIES | SESSION_TRACK
        number = self.number = next(self.proxy.numbers)
        self._send(
            0,
            b"\x0a%s\x00%s12345678\x00" % (version, number.to_bytes(4, "little"))
            + (offered & 0xFFFF).to_bytes(2, "little")
            + b"\x2d\x02\x00"
            + (offered >> 16).to_bytes(2, "little")
            + b"\x15%s123456789012\x00mysql_native_password\x00" % bytes(10),
        )
        self.flags = int.from_bytes(_packet(self.rfile)[4:8], "little") & offered
        self._send(2, _OK)

    def _answer(self, command: bytes) -> None:
        if command[4] != _QUERY:
            self._send(1, _OK)
            return
        sql = command[5:].decode("utf-8", "replace")
        if _NUMBER.match(sql):
            self._answer_number()
            return
        group = self.proxy.rule(sql)
        if _SETTING.match(sql) or _NAMES.match(sql):
            self.settings.append(command)
            for address in list(self.servers):
                self._relay(address, command, shown=False)
            self._send(1, _OK)
            return
        if self.locked not in (None, group):
            self._send(1, b"\xff" + (9006).to_bytes(2, "little") + b"#Y0000locked to a hostgroup")
            return
        if self.proxy.locks and sql.lstrip().upper().startswith("SET"):
            self.locked = group
        address = self.open or self.pinned.get(group) or next(self.proxy.turns[group])
        if "@@" in sql:
            self.pinned[group] = address
        status = self._relay(address, command)
        self.open = address if status & _IN_TRANSACTION else None

    def _answer_number(self) -> None:
        """One row of one column."""
        name, value = b"CONNECTION_ID()", str(self.number).encode()
        column = b"\x03def\x00\x00\x00" + bytes([len(name)]) + name + b"\x00\x0c\x3f\x00"
        column += b"\x15\x00\x00\x00\x08\x81\x00\x00\x00\x00"
        eof = b"\xfe\x00\x00\x02\x00"
        row = bytes([len(value)]) + value
        for number, payload in enumerate((b"\x01", column, eof, row, eof), 1):
            self._send(number, payload)

    def _relay(self, address: Address, command: bytes, *, shown: bool = True) -> int:
        """Let a server answer; the flags behind its answer."""
        connection = self.servers.get(address)
        if connection is None:
            connection = self.servers[address] = self._connect(address)
            for setting in self.settings:
                self._relay(address, setting, shown=False)
        connection._sock.sendall(command)
        while True:
            packet = self._pass(connection, shown=shown)
            if packet[0] == _OK[0]:
                status = _ok_status(packet)
            else:
                ends = 0
                while ends < 2:  # That of the columns, and that of the rows.
                    if packet[0] == _ERROR:
                        return 0
                    packet = self._pass(connection, shown=shown)
                    ends += packet[0] == _EOF and len(packet) < _EOF_BELOW
                status = int.from_bytes(packet[3:5], "little")
            if not status & _MORE_RESULTS:
                return status

    def _pass(self, connection: Any, *, shown: bool) -> bytes:
        """The next packet of a server, passed on."""
        packet = _packet(connection._rfile)
        if shown:
            self.wfile.write(packet)
        return packet[4:]

    def _connect(self, address: Address) -> Any:
        topology = self.proxy.topology
        tracked = SESSION_TRACK if topology.store == "mysql" else 0
        return pymysql.connect(
            host=address.host,
            port=address.port,
            user=topology.user,
            password=topology.password,
            database=topology.database,
            autocommit=True,
            client_flag=self.flags & (tracked | 0x2),
        )

    def _send(self, number: int, payload: bytes) -> None:
        self.wfile.write(len(payload).to_bytes(3, "little") + bytes([number]) + payload)


def _packet(source: Any) -> bytes:
    header = source.read(4)
    if len(header) < 4:
        raise EOFError
    payload = source.read(int.from_bytes(header[:3], "little"))
    return bytes(header + payload)


def _ok_status(payload: bytes) -> int:
    at = 1
    for _ in range(2):
        at += {0xFC: 3, 0xFD: 4, 0xFE: 9}.get(payload[at], 1)
    return int.from_bytes(payload[at : at + 2], "little")
