package io.antipode.activemq;

import java.io.IOException;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerFilter;
import org.apache.activemq.broker.BrokerPlugin;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.ConnectionContext;
import org.apache.activemq.command.TransactionId;

/** A broker of ActiveMQ within the test, which clients reach by TCP. */
final class Broker implements AutoCloseable {
  private static final String ANY = "tcp://127.0.0.1:0";

  private final BrokerService service = new BrokerService();
  private final String url;

  Broker() throws Exception {
    this(ANY);
  }

  /** Returns one that fails to commit, and does not say whether it has. */
  static Broker failingToCommit() throws Exception {
    return new Broker(
        ANY,
        next ->
            new BrokerFilter(next) {
              @Override
              public void commitTransaction(
                  ConnectionContext context, TransactionId id, boolean onePhase) throws Exception {
                throw new IOException("the disk is full");
              }
            });
  }

  Broker(String address, BrokerPlugin... plugins) throws Exception {
    service.setPlugins(plugins);
    service.setPersistent(false);
    service.setUseJmx(false);
    service.setUseShutdownHook(false);
    service.setAdvisorySupport(false);
    service.addConnector(address);
    service.start();
    boolean ignored = service.waitUntilStarted();
    url = service.getTransportConnectors().get(0).getPublishableConnectString();
  }

  String url() {
    return url;
  }

  ActiveMQConnectionFactory factory() {
    return new ActiveMQConnectionFactory(url + "?jms.watchTopicAdvisories=false");
  }

  @Override
  public void close() throws Exception {
    service.stop();
  }
}
