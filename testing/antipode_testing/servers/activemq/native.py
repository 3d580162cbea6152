"""A native broker of ActiveMQ Classic: a Java process with a folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from antipode_testing._process import ServerProcess, find_executable
from antipode_testing.servers.server import NativeServer, make_directory, probe, reserving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antipode_testing._address import ReservedPort

INSTALL = "tools/fetch_activemq.sh .stores"
#: Where clients connect by STOMP, and where brokers do by OpenWire.
PORTS = ("client", "openwire")
START_TIMEOUT_S = 90.0
#: What a broker is configured with: the key of `config` with its network, for the other region.
NETWORK = "network"
_CONFIG = """<beans xmlns="http://www.springframework.org/schema/beans"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:schemaLocation="http://www.springframework.org/schema/beans
  http://www.springframework.org/schema/beans/spring-beans.xsd
  http://activemq.apache.org/schema/core
  http://activemq.apache.org/schema/core/activemq-core.xsd">
 <broker xmlns="http://activemq.apache.org/schema/core" brokerName="{name}"
  dataDirectory="{directory}/data" useJmx="false" persistent="true">
  {network}
  <destinationPolicy><policyMap><policyEntries>
   <policyEntry queue="&gt;"><networkBridgeFilterFactory>
    <conditionalNetworkBridgeFilterFactory replayWhenNoConsumers="true"/>
   </networkBridgeFilterFactory></policyEntry>
  </policyEntries></policyMap></destinationPolicy>
  <persistenceAdapter>
   <kahaDB directory="{directory}/kahadb" journalMaxFileLength="4mb"/>
  </persistenceAdapter>
  <transportConnectors>
   <transportConnector name="openwire" uri="tcp://{openwire}"/>
   <transportConnector name="stomp" uri="stomp://{client}"/>
  </transportConnectors>
 </broker>
</beans>
"""
_CONNECTOR = (
    '<networkConnectors><networkConnector name="to-other" uri="static:(tcp://{address}'
    "?wireFormat.maxInactivityDuration=4000)?initialReconnectDelay=100&amp;maxReconnectDelay=100"
    '&amp;useExponentialBackOff=false" networkTTL="2"/></networkConnectors>'
)
#: Two brokers start at once beside what is tested: quick to start, and small.
_JAVA = (
    *("-Xms32m", "-Xmx128m", "-Xss512k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *("--add-opens", "java.base/java.lang=ALL-UNNAMED"),
)


def activemq(name: str, config: Mapping[str, str]) -> NativeServer:
    """Prepare one broker; it is started by its `NativeServer`."""
    java = find_executable("java", install="apt-get install default-jre-headless")
    jar = find_executable("activemq.jar", install=INSTALL).resolve()

    def build(ports: dict[str, ReservedPort]) -> NativeServer:
        directory = make_directory("activemq")
        addresses = {key: port.address for key, port in ports.items()}
        network = config.get(NETWORK, "")
        (directory / "activemq.xml").write_text(
            _CONFIG.format(
                name=name,
                directory=escape(str(directory)),
                network=_CONNECTOR.format(address=network) if network else "",
                **addresses,
            )
        )
        folders = {"home": jar.parent.parent, "base": directory, "conf": directory}
        options = [f"-Dactivemq.{each}={folder}" for each, folder in folders.items()]
        command = [str(java), *_JAVA, f"-Djava.io.tmpdir={directory}", *options]
        process = ServerProcess(
            f"activemq-{name}",
            [*command, "-jar", str(jar), "start", f"xbean:file:{directory}/activemq.xml"],
            directory=directory,
            ready=lambda: probe(
                addresses["client"], b"CONNECT\naccept-version:1.2\nhost:a\n\n\0", b"CONNECTED"
            ),
            timeout_s=START_TIMEOUT_S,
        )
        return NativeServer(directory, ports, process, data=(directory / "kahadb",))

    return reserving(PORTS, build)
