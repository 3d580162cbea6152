package io.antipode.activemq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import jakarta.jms.Connection;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.UUID;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.junit.jupiter.api.Test;

/** Brokers behind {@code failover:}, to which ActiveMQ's client connects again without a word. */
class FailoverTest {
  private static final byte[] BODY = "1".getBytes(StandardCharsets.UTF_8);
  private static final int ATTEMPTS = 100;
  private static final Counts.Metric LOST = new Counts.Metric("receipts_lost", "news");

  private final String name = "VirtualTopic." + UUID.randomUUID();

  private static String failover(String url) {
    return "failover:(" + url + ")?initialReconnectDelay=10&useExponentialBackOff=false";
  }

  private static String freeAddress() throws IOException {
    try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return "tcp://127.0.0.1:" + free.getLocalPort();
    }
  }

  private ActiveMqShim.Builder builder(String url) {
    return ActiveMqShim.builder("news", failover(url)).topic(name);
  }

  private static long lost() {
    return Counts.all().getOrDefault(LOST, 0L);
  }

  /** Publishes, each time as another publisher, until what is published is heard. */
  private void publishUntilHeard(String url) throws Exception {
    boolean isHeard = false;
    for (int attempt = 0; attempt < ATTEMPTS && !isHeard; attempt++) {
      isHeard = isHeard(url);
    }
    assertThat(isHeard).isTrue();
  }

  private boolean isHeard(String url) throws Exception {
    try (ActiveMqShim publisher = builder(url).register();
        ScopeBlock request = Antipode.scope()) {
      publisher.write("post:1", BODY);
      Barriers.barrier(BarrierOptions.timeout(Duration.ofMillis(200)));
      return true;
    } catch (UnmetException missed) { // The receipts were not there yet.
      return false;
    }
  }

  /** What passed while the broker was away was not heard, which must not stay unsaid. */
  @Test
  void receiptsOfABrokerThatWasAwayAreLostAndBack() throws Exception {
    Broker broker = new Broker();
    String url = broker.url();
    try (ActiveMqShim news = builder(url).receipts().register()) {
      publishUntilHeard(url);
      long before = lost();
      broker.close();
      broker = new Broker(url);
      publishUntilHeard(url);
      assertThat(lost()).isGreaterThan(before);
    } finally {
      broker.close();
    }
  }

  /** A broker that is not there keeps neither the application's start nor its end. */
  @Test
  void aBrokerThatIsNotThereIsNotWaitedFor() throws Exception {
    String url = freeAddress();
    assertTimeoutPreemptively(
        Duration.ofSeconds(10),
        () -> {
          try (ActiveMqShim news = builder(url).receipts().register()) {
            assertThat(news.datastore()).isEqualTo("news");
          }
        });
  }

  /** Connections of the application's own go on as the client lets them, with their numbers. */
  @Test
  void anInstrumentedSessionGoesOn() throws Exception {
    Broker broker = new Broker();
    String url = broker.url();
    try (ActiveMqShim news = builder(url).receipts().register();
        Connection connection =
            ActiveMqInstrumentation.of("news")
                .withReceipts()
                .instrument(new ActiveMQConnectionFactory(failover(url)))
                .createConnection();
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(session.createTopic(name));
        ScopeBlock request = Antipode.scope()) {
      producer.send(session.createTextMessage("1"));
      broker.close();
      broker = new Broker(url);
      producer.send(session.createTextMessage("2"));
      assertThat(Antipode.current().writes()).extracting(WriteId::version).containsExactly(2L);
      assertThat(Antipode.current().incomplete()).isEmpty();
    } finally {
      broker.close();
    }
  }
}
