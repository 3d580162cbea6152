"""The client that the page about other frameworks of Java shows takes lineages there and back."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conformance._agents import ROOT, command

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "guides" / "java" / "other-frameworks.md"
#: A service that says what arrived, writes, and answers; and a request that calls it.
PROGRAM = """
import com.sun.net.httpserver.HttpServer;
import io.antipode.Antipode;
import io.antipode.lineage.WriteId;
import io.antipode.propagation.Headers;
import io.antipode.propagation.IncomingRequest;
import io.antipode.request.ScopeBlock;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.List;

public final class Main {
  public static void main(String[] arguments) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/", exchange -> {
      List<String> baggage = exchange.getRequestHeaders().get(Headers.BAGGAGE);
      boolean sent = exchange.getRequestHeaders().containsKey(Headers.SENT);
      try (IncomingRequest incoming =
          IncomingRequest.begin(baggage, sent, exchange, each -> each == exchange)) {
        System.out.println("arrived " + Antipode.current().writes());
        Antipode.append(WriteId.of("there", "log", 2));
        exchange.getResponseHeaders().set(Headers.LINEAGE, incoming.answer());
        exchange.sendResponseHeaders(204, -1);
      }
    });
    server.start();
    try (ScopeBlock request = Antipode.scope()) {
      Antipode.append(WriteId.of("here", "log", 1));
      new LineageClient().get(
          URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/"));
      System.out.println("after " + Antipode.current().writes());
    } finally {
      server.stop(0);
    }
  }
}
"""


def test_the_client_of_the_page_sends_and_merges(tmp_path: Path) -> None:
    """What it calls knows what its request has written, and the request what that one wrote."""
    jar = command("java")[-1]
    shown = dict(
        re.findall(
            r'```java title="(\w+\.java)"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL
        )
    )
    (tmp_path / "LineageClient.java").write_text(shown["LineageClient.java"], encoding="utf-8")
    (tmp_path / "Main.java").write_text(PROGRAM, encoding="utf-8")
    sources = ("LineageClient.java", "Main.java")
    subprocess.run(["javac", "-cp", jar, *sources], cwd=tmp_path, check=True, timeout=100)
    ran = subprocess.run(
        ["java", "-cp", f"{jar}:{tmp_path}", "Main"],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert ran.stdout.splitlines() == [
        "arrived [here[log]=1]",
        "after [here[log]=1, there[log]=2]",
    ]
