package io.antipode.activemq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The shim on a broker. What it proves between two is in the contract suite. */
class ActiveMqShimTest {
  private static final byte[] BODY = "1".getBytes(StandardCharsets.UTF_8);
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final int ATTEMPTS = 100;

  private final String name = "VirtualTopic." + UUID.randomUUID();
  private Broker broker;
  private ActiveMqShim news;

  @BeforeEach
  void open() throws Exception {
    broker = new Broker();
    news = builder().receipts().register();
    assertThat(news.read(Duration.ofMillis(1))).isNull(); // The queue is there from now on.
  }

  private ActiveMqShim.Builder builder() {
    return ActiveMqShim.builder("news", broker.factory()).topic(name).queue("Consumer.app." + name);
  }

  @AfterEach
  void close() throws Exception {
    news.close();
    broker.close();
  }

  private static void barrier(Duration timeout) throws Exception {
    Barriers.barrier(BarrierOptions.timeout(timeout));
  }

  @Test
  void aBarrierWaitsForWhatIsPublishedAndItsReaderDependsOnIt() throws Exception {
    Lineage written;
    try (ScopeBlock request = Antipode.scope()) {
      written = news.write("post:1", BODY);
      assertThat(written.writes()).hasSize(1);
      barrier(LONG);
    }
    try (ScopeBlock request = Antipode.scope()) {
      ActiveMqShim.Delivery found = news.read(LONG);
      assertThat(found.value()).isEqualTo(BODY);
      assertThat(found.key()).isEqualTo("post:1");
      assertThat(found.lineage()).isEqualTo(written).isEqualTo(Antipode.current());
    }
  }

  @Test
  void whatAHandlerThrowsLetsTheBrokerDeliverTheMessageAgain() throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      news.write("post:1", BODY);
    }
    assertThatThrownBy(
            () ->
                news.receive(
                    LONG,
                    message -> {
                      throw new IllegalArgumentException("no");
                    }))
        .isInstanceOf(IllegalArgumentException.class);
    boolean any = news.receive(LONG, message -> assertThat(message.isRedelivered()).isTrue());
    assertThat(any).isTrue();
    assertThat(news.receive(Duration.ofMillis(1), message -> {})).isFalse();
  }

  /** Another publisher's message never came: a barrier for it ends at its deadline. */
  @Test
  void aBarrierForWhatNeverCameTimesOut() throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      news.write("post:1", BODY);
      WriteId seen = Antipode.current().writes().get(0);
      Lineage next = Lineage.of(WriteId.of("news", seen.key(), 2));
      try (ScopeBlock other = Antipode.scope(next)) {
        assertThatThrownBy(() -> barrier(Duration.ofMillis(100)))
            .isInstanceOf(BarrierTimeoutException.class);
      }
    }
  }

  @Test
  void receiptsAreBackOnceTheBrokerIs() throws Exception {
    String url = broker.url();
    broker.close();
    broker = new Broker(url);
    boolean isVisible = false;
    for (int attempt = 0; attempt < ATTEMPTS && !isVisible; attempt++) {
      isVisible = isVisible();
    }
    assertThat(isVisible).isTrue();
  }

  /** Returns whether a barrier sees what a new publisher publishes. */
  private boolean isVisible() throws Exception {
    try (ActiveMqShim publisher = builder().register();
        ScopeBlock request = Antipode.scope()) {
      publisher.write("post:1", BODY);
      barrier(Duration.ofMillis(200));
      return true;
    } catch (UnmetException missed) { // The receipts were not there yet.
      return false;
    }
  }

  @Test
  void receiptsNeedATopicAndUrlsAreRefusedWithoutWhatStandsInThem() {
    assertThatThrownBy(() -> ActiveMqShim.builder("news", broker.url()).receipts().register())
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("topic");
    assertThatThrownBy(() -> ActiveMqShim.builder("news", "tcp://secret at broker"))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageNotContaining("secret");
  }
}
