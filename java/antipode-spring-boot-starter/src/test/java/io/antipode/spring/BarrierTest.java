package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Endpoint;
import io.antipode.barrier.Observation;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.barrier.Status;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Methods of a bean that wait for the lineage of their request. */
@Timeout(60)
class BarrierTest {
  private static final WriteId WRITE = WriteId.of("posts", "log", 7);
  private static final Replica REPLICA = new Replica();

  private static ConfigurableApplicationContext application;

  @Configuration
  @EnableAutoConfiguration
  static class Application {
    @Bean
    Posts posts() {
      return new Posts();
    }
  }

  /** Each method says whether its request has a scope, and what it reads. */
  static class Posts {
    @Barrier(timeout = "20s")
    public String blocking() {
      return read();
    }

    @Barrier(timeout = "20s")
    public CompletableFuture<String> future() {
      return CompletableFuture.completedFuture(read());
    }

    @Barrier(timeout = "20s")
    public Mono<String> mono() {
      return Mono.fromSupplier(Posts::read);
    }

    @Barrier(timeout = "20s")
    public Flux<String> flux() {
      return Flux.just(1).map(one -> read());
    }

    @Barrier(timeout = "50ms")
    public String late() {
      return read();
    }

    @Barrier(timeout = "50ms")
    public CompletableFuture<String> lateFuture() {
      return CompletableFuture.completedFuture(read());
    }

    @Barrier(timeout = "50ms")
    public Mono<String> lateMono() {
      return Mono.fromSupplier(Posts::read);
    }

    @Barrier(timeout = "50ms", only = "users")
    public String ofOthers() {
      return read();
    }

    @Barrier(timeout = "soon")
    public String wrong() {
      return read();
    }

    private static String read() {
      return (Scope.currentOrNull() == null ? "no scope, " : "") + REPLICA.position;
    }
  }

  /** A replica that shows a position of one log. */
  private static final class Replica extends Shim {
    volatile long position;

    Replica() {
      super("posts", ReadsFrom.REPLICA);
    }

    @Override
    public Endpoint openEndpoint(Duration timeout) {
      return new Endpoint() {
        @Override
        public Observation observe(Collection<WriteId> writes, Duration timeout) {
          Observation.Builder shown = Observation.of("incarnation");
          writes.stream()
              .filter(write -> write.version() <= position)
              .forEach(write -> shown.write(write, Status.VISIBLE));
          return shown.build();
        }

        @Override
        public void close() {}
      };
    }
  }

  @BeforeAll
  static void start() {
    Shims.register(REPLICA);
    SpringApplication plain = new SpringApplication(Application.class);
    plain.setWebApplicationType(WebApplicationType.NONE);
    application = plain.run("--spring.main.banner-mode=off", "--logging.level.root=error");
  }

  @AfterAll
  static void stop() {
    application.close();
    REPLICA.close();
  }

  @BeforeEach
  void lag() {
    REPLICA.position = 0;
  }

  private static Posts posts() {
    return application.getBean(Posts.class);
  }

  /** What is read by a request that wrote, while the replica catches up. */
  private static String read(Supplier<String> method) {
    REPLICA.position = 0;
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      CompletableFuture<Void> applied =
          CompletableFuture.runAsync(
              () -> REPLICA.position = 7,
              CompletableFuture.delayedExecutor(30, TimeUnit.MILLISECONDS));
      String found = method.get();
      applied.join();
      return found;
    }
  }

  @Test
  void aMethodRunsOnceWhatItDependsOnIsVisible() {
    assertThat(read(() -> posts().blocking())).isEqualTo("7");
    assertThat(read(() -> posts().future().join())).isEqualTo("7");
    assertThat(read(() -> posts().mono().block())).isEqualTo("7");
    assertThat(read(() -> posts().flux().blockLast())).isEqualTo("7");
  }

  @Test
  void aMethodThatReturnsAFutureDoesNotBlock() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      CompletableFuture<String> found = posts().future();
      assertThat(found).isNotDone();
      REPLICA.position = 7;
      assertThat(found.join()).isEqualTo("7");
    }
  }

  @Test
  void whatIsUnmetIsThrownInTheWayOfTheMethod() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      assertThatThrownBy(() -> posts().late()).isInstanceOf(BarrierTimeoutException.class);
      assertThatThrownBy(() -> posts().lateFuture().join())
          .isInstanceOf(CompletionException.class)
          .hasCauseInstanceOf(BarrierTimeoutException.class);
      assertThatThrownBy(() -> posts().lateMono().block())
          .isInstanceOf(BarrierTimeoutException.class);
    }
  }

  @Test
  void otherDatastoresAreNotWaitedFor() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      assertThat(posts().ofOthers()).isEqualTo("0");
    }
  }

  @Test
  void aWrongTimeoutIsSaidWithItsMethod() {
    try (ScopeBlock block = Antipode.scope(Lineage.of(WRITE))) {
      assertThatThrownBy(() -> posts().wrong())
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("wrong()")
          .hasMessageContaining("must be like 2s, 500ms or PT2S, not soon");
    }
  }

  @Test
  void aBarrierComesBeforeTheTransactionOfItsMethod() {
    Ordered advisor = (Ordered) application.getBean("antipodeBarrierAdvisor");
    assertThat(advisor.getOrder()).as("that of transactions").isLessThan(Integer.MAX_VALUE);
  }
}
