package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.lab.Lab;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.async.RedisAsyncCommands;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.data.redis.RedisAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.StringRedisTemplate;

/** Spring Data Redis on a real server, over Boot's connection factories. */
@Tag("lab")
@ExtendWith(OutputCaptureExtension.class)
class BootRedisTest {
  /** How far ahead of what was written something is waited for: in bytes of the log. */
  private static final int AHEAD = 10_000;

  private static Lab lab;

  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  AntipodeRedisAutoConfiguration.class, RedisAutoConfiguration.class))
          .withPropertyValues(
              "spring.data.redis.url=" + lab.url(),
              "antipode.redis.factories.redis-connection-factory.datastore=posts");

  @BeforeAll
  static void start() throws Exception {
    lab = Lab.start("redis");
  }

  @AfterAll
  static void stop() throws Exception {
    lab.close();
  }

  private static int written() {
    assertThat(Antipode.current().incomplete()).isEmpty();
    return Antipode.current().writes().size();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "client-type=lettuce",
        "lettuce.pool.enabled=true",
        "client-type=jedis",
        "jedis.pool.enabled=false"
      })
  void aTemplateRecordsItsWritesAndWaitsWithItsReads(String property) {
    String type = property.startsWith("jedis") ? "jedis" : "lettuce";
    application
        .withPropertyValues("spring.data.redis.client-type=" + type)
        .withPropertyValues("spring.data.redis." + property)
        .run(
            context -> {
              StringRedisTemplate template = context.getBean(StringRedisTemplate.class);
              try (ScopeBlock request = Antipode.scope()) {
                template.opsForValue().set("k", "hello");
                assertThat(written()).isEqualTo(1);
                Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)).atRead());
                assertThat(template.opsForValue().get("k")).isEqualTo("hello");
              }
              try (ScopeBlock request = Antipode.scope()) {
                RedisCallback<Object> increments =
                    connection -> {
                      Long unused = connection.stringCommands().incr(new byte[] {'n'});
                      return null;
                    };
                assertThat(template.executePipelined(increments)).hasSize(1);
                assertThat(written()).isEqualTo(1);
              }
              waitsInVain(template);
            });
  }

  @Test
  void anApplicationThatEndsWarnsOfNothing(CapturedOutput output) {
    application
        .withPropertyValues("spring.data.redis.client-type=lettuce")
        .run(
            context -> {
              StringRedisTemplate template = context.getBean(StringRedisTemplate.class);
              try (ScopeBlock request = Antipode.scope()) {
                template.opsForValue().set("k", "hello");
                Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)));
              }
            });
    assertThat(output.getAll()).doesNotContain(" WARN ").doesNotContain("Exception");
  }

  @Test
  void aReadThatWaitsDelaysNobodyElseOnTheSharedConnection() {
    application
        .withPropertyValues("spring.data.redis.client-type=lettuce")
        .withPropertyValues("spring.data.redis.timeout=500ms") // Less than the read waits.
        .run(
            context -> {
              StringRedisTemplate template = context.getBean(StringRedisTemplate.class);
              RedisConnectionFactory connections = context.getBean(RedisConnectionFactory.class);
              WriteId written;
              try (ScopeBlock request = Antipode.scope()) {
                template.opsForValue().set("k", "hello");
                written = Antipode.current().writes().iterator().next();
              }
              WriteId later = WriteId.of("posts", written.key(), written.version() + AHEAD);
              RedisFuture<byte[]> held;
              try (ScopeBlock request = Antipode.scope(Lineage.of(later));
                  RedisConnection connection = connections.getConnection()) {
                Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)).atRead());
                held = shared(connection).get(new byte[] {'k'});
              }
              try (ScopeBlock another = Antipode.scope()) {
                assertThat(template.opsForValue().get("k")).isEqualTo("hello");
                assertThat(held.isDone()).isFalse();
                template.opsForValue().set("filler", "x".repeat(AHEAD));
              }
              assertThat(held.get(20, TimeUnit.SECONDS))
                  .isEqualTo(new byte[] {'h', 'e', 'l', 'l', 'o'});
            });
  }

  private static int port(String url) {
    return RedisURI.create(url).getPort();
  }

  @Configuration
  static class Regions {
    @Bean
    LettuceConnectionFactory near() {
      return at(lab.url());
    }

    @Bean
    LettuceConnectionFactory far() {
      return at(lab.otherUrl());
    }

    private static LettuceConnectionFactory at(String url) {
      return new LettuceConnectionFactory(new RedisStandaloneConfiguration("127.0.0.1", port(url)));
    }
  }

  /** Both factories are named by their addresses; the replica's own value shows who answered. */
  @Test
  void aReadThatWouldBeStaleAtTheReplicaIsMadeAtThePrimary() {
    String far = "feed=redis://127.0.0.1:" + port(lab.otherUrl()) + "?reads_from=replica";
    new ApplicationContextRunner()
        .withConfiguration(
            AutoConfigurations.of(
                AntipodeAutoConfiguration.class, AntipodeRedisAutoConfiguration.class))
        .withUserConfiguration(Regions.class)
        .withPropertyValues(
            "antipode.datastores=feed=redis://127.0.0.1:" + port(lab.url()) + ", " + far,
            "antipode.barriers=auto",
            "antipode.auto-timeout=50ms",
            "antipode.on-stale=primary")
        .run(
            context -> {
              StringRedisTemplate near =
                  new StringRedisTemplate(context.getBean("near", RedisConnectionFactory.class));
              StringRedisTemplate replica =
                  new StringRedisTemplate(context.getBean("far", RedisConnectionFactory.class));
              WriteId written;
              try (ScopeBlock request = Antipode.scope()) {
                near.opsForValue().set("moved", "new");
                written = Antipode.current().writes().iterator().next();
                Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(20)));
              }
              RedisCallback<Object> diverges =
                  connection -> {
                    connection.serverCommands().setConfig("replica-read-only", "no");
                    return null;
                  };
              Object unused = replica.execute(diverges);
              replica.opsForValue().set("moved", "old");
              Counts.Metric moved = new Counts.Metric("reads_at_primary", "feed");
              WriteId later = WriteId.of("feed", written.key(), written.version() + AHEAD);
              try (ScopeBlock request = Antipode.scope(Lineage.of(written))) {
                assertThat(replica.opsForValue().get("moved")).isEqualTo("old");
                assertThat(Counts.all().getOrDefault(moved, 0L)).isZero();
              }
              try (ScopeBlock request = Antipode.scope(Lineage.of(later))) {
                assertThat(replica.opsForValue().get("moved")).isEqualTo("new");
                assertThat(replica.opsForValue().multiGet(List.of("moved", "nothing")))
                    .containsExactly("new", null);
                assertThat(Counts.all()).containsEntry(moved, 2L);
              }
            });
  }

  @SuppressWarnings("unchecked") // Spring Data talks in bytes.
  private static RedisAsyncCommands<byte[], byte[]> shared(RedisConnection connection) {
    return (RedisAsyncCommands<byte[], byte[]>) connection.getNativeConnection();
  }

  private static void waitsInVain(StringRedisTemplate template) {
    WriteId position;
    try (ScopeBlock request = Antipode.scope()) {
      template.opsForValue().set("k", "again");
      position = Antipode.current().writes().iterator().next();
    }
    WriteId later = WriteId.of("posts", position.key(), position.version() + 1_000_000);
    try (ScopeBlock request = Antipode.scope(Lineage.of(later))) {
      Barriers.barrier(BarrierOptions.timeout(Duration.ofMillis(100)).atRead());
      assertThatThrownBy(() -> template.opsForValue().get("k"))
          .satisfies(
              error ->
                  assertThat(Stream.iterate(error, each -> each != null, Throwable::getCause))
                      .hasAtLeastOneElementOfType(BarrierTimeoutException.class));
    }
    assertThat(List.of(template.opsForValue().get("k"))).containsExactly("again");
  }
}
