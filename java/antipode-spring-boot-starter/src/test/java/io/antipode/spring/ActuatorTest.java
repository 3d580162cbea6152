package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.barrier.Status;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.web.client.RestClient;

/** What an operator sees of the library in Boot's actuator. */
@Tag("actuator")
class ActuatorTest {
  private static final WriteId WRITE = WriteId.of("actuated", "log", 5);

  private static ConfigurableApplicationContext application;
  private static RestClient client;

  @Configuration
  @EnableAutoConfiguration
  static class Application {}

  /** A replica that is there or not, as a test says. */
  private static final class Replica extends Shim {
    private boolean isThere;

    Replica() {
      super("actuated", ReadsFrom.REPLICA);
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      if (!isThere) {
        throw new UnreachableException("it is away");
      }
      return new Endpoint() {
        @Override
        public Observation observe(Collection<WriteId> writes, Duration timeout) {
          Observation.Builder shown = Observation.of("replica");
          writes.forEach(write -> shown.write(write, Status.VISIBLE));
          return shown.build();
        }

        @Override
        public void close() {}
      };
    }
  }

  @BeforeAll
  static void start() {
    application =
        new SpringApplication(Application.class)
            .run(
                "--server.port=0",
                "--server.address=127.0.0.1",
                "--spring.main.banner-mode=off",
                "--logging.level.root=error",
                "--management.health.defaults.enabled=false",
                "--management.health.antipode.enabled=true",
                "--management.health.ping.enabled=true",
                "--management.endpoints.web.exposure.include=health,metrics",
                "--management.endpoint.health.show-components=always",
                "--management.endpoint.health.show-details=always");
    int port = ((ServletWebServerApplicationContext) application).getWebServer().getPort();
    client = RestClient.create("http://127.0.0.1:" + port + "/actuator");
  }

  @AfterAll
  static void stop() {
    application.close();
  }

  private static Map<String, Object> get(String path) {
    return client.get().uri(path).retrieve().body(new ParameterizedTypeReference<>() {});
  }

  private static Object measured(String path) {
    return ((Map<?, ?>) ((List<?>) get(path).get("measurements")).get(0)).get("value");
  }

  private static Map<?, ?> detail(Map<?, ?> health) {
    Map<?, ?> datastores = (Map<?, ?>) ((Map<?, ?>) health.get("details")).get("datastores");
    return (Map<?, ?>) ((List<?>) datastores.get("actuated")).get(0);
  }

  /** The application stays up whatever a look found, for nobody would look again without it. */
  @Test
  void healthSaysHowTheLastLookEndedAndKeepsTheApplicationUp() {
    try (Replica replica = new Replica()) {
      Shims.register(replica);
      assertThat(get("/health/antipode")).containsEntry("status", "UP");
      assertThat(detail(get("/health/antipode")).toString())
          .contains("readsFrom=replica", "lastPoll=none");
      BarrierOptions briefly =
          BarrierOptions.timeout(Duration.ofSeconds(1)).withLineage(Lineage.of(WRITE));
      assertThatThrownBy(() -> Barriers.barrier(briefly))
          .isInstanceOf(BarrierTimeoutException.class);
      assertThat(get("/health/antipode")).containsEntry("status", "UNKNOWN");
      assertThat(detail(get("/health/antipode")).toString())
          .contains("lastPoll=failed", "failure=it is away");
      assertThat(get("/health")).containsEntry("status", "UP");
      replica.isThere = true;
      Barriers.barrier(
          BarrierOptions.timeout(Duration.ofSeconds(10)).withLineage(Lineage.of(WRITE)));
      assertThat(get("/health/antipode")).containsEntry("status", "UP");
      assertThat(detail(get("/health/antipode")).toString()).contains("lastPoll=ok");
    }
    assertThat(((Map<?, ?>) get("/health/antipode").get("details")).get("datastores").toString())
        .doesNotContain("actuated");
  }

  @Test
  void barriersWaitsAndCountsAreMeters() {
    Counts.count("incomplete", "metered");
    Counts.count("incomplete", "metered");
    Counts.count("unscoped_write", "metered");
    try (ScopeBlock request = Antipode.scope(Lineage.of(WriteId.of("metered", "log", 1)))) {
      request.scope().text();
      BarrierOptions options = BarrierOptions.timeout(Duration.ofSeconds(1));
      Barriers.barrier(options.withExclude("metered"));
      assertThat(Barriers.check(options.withOnly("metered")).isOk()).isFalse();
    }
    String barrier = "/metrics/antipode.barrier.duration?tag=antipode.operation:";
    assertThat((Double) measured(barrier + "barrier&tag=antipode.status:ok"))
        .isGreaterThanOrEqualTo(1);
    assertThat(
            measured(barrier + "check&tag=antipode.status:unknown_datastore&tag=error.type:none"))
        .isEqualTo(1.0);
    String metered = "?tag=antipode.datastore:metered";
    assertThat(measured("/metrics/antipode.incomplete_marks" + metered)).isEqualTo(2.0);
    assertThat(measured("/metrics/antipode.unscoped_operations?tag=antipode.operation:write"))
        .isEqualTo(1.0);
    assertThat(measured("/metrics/antipode.unmet_dependencies" + metered)).isEqualTo(1.0);
    assertThat((Double) measured("/metrics/antipode.lineage.size")).isGreaterThanOrEqualTo(1);
  }
}
