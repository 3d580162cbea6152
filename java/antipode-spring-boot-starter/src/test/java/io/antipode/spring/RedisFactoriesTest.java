package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.OnStale;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.lettuce.core.ReadFrom;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Which connection factories the starter instruments. No server is asked. */
class RedisFactoriesTest {
  @RegisterExtension private final Logged logged = new Logged();

  private static final RedisStandaloneConfiguration SERVER =
      new RedisStandaloneConfiguration("127.0.0.1", 1);

  private final ApplicationContextRunner application =
      new ApplicationContextRunner()
          .withConfiguration(AutoConfigurations.of(AntipodeRedisAutoConfiguration.class))
          .withBean("near", RedisConnectionFactory.class, RedisFactoriesTest::lettuce)
          .withBean("old", RedisConnectionFactory.class, () -> new JedisConnectionFactory(SERVER))
          .withBean("others", RedisConnectionFactory.class, RedisFactoriesTest::lettuce);

  private static LettuceConnectionFactory lettuce() {
    LettuceConnectionFactory factory = new LettuceConnectionFactory(SERVER);
    factory.setShareNativeConnection(false);
    return factory;
  }

  @Test
  void thoseThatPropertiesNameAndNoOther() {
    application
        .withPropertyValues("antipode.redis.factories.near.datastore=posts")
        .withPropertyValues("antipode.redis.factories.old.datastore=posts")
        .run(
            context -> {
              assertThat(context.getBean("near"))
                  .isInstanceOf(InstrumentedLettuceConnectionFactory.class)
                  .hasFieldOrPropertyWithValue("shareNativeConnection", false);
              assertThat(context.getBean("old"))
                  .isInstanceOf(InstrumentedJedisConnectionFactory.class);
              assertThat(context.getBean("others"))
                  .isExactlyInstanceOf(LettuceConnectionFactory.class);
            });
  }

  private static final String RULE = "antipode.datastores=feed=redis://localhost:1/0";

  @Test
  void thoseWhoseAddressARuleNames() {
    application
        .withBean(
            "far",
            RedisConnectionFactory.class,
            () -> new LettuceConnectionFactory(new RedisStandaloneConfiguration("far", 2)))
        .withPropertyValues(RULE)
        .run(
            context -> {
              assertThat(context.getBean("old"))
                  .isInstanceOf(InstrumentedJedisConnectionFactory.class);
              assertThat(context.getBean("far"))
                  .isExactlyInstanceOf(LettuceConnectionFactory.class);
            });
    assertThat(logged.text())
        .contains("instrumented: near -> feed; old -> feed; others -> feed")
        .contains("not instrumented: far (redis at far:2/0).");
  }

  /** What a rule names, and cannot be kept. */
  @Test
  void aRuleForSentinelsEndsTheStart() {
    application
        .withBean(
            "watched",
            RedisConnectionFactory.class,
            () ->
                new LettuceConnectionFactory(
                    new RedisSentinelConfiguration("mymaster", Set.of("a:1"))))
        .withPropertyValues("antipode.datastores=feed=redis+sentinel://mymaster")
        .run(
            context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining("one server"));
  }

  @Test
  void staleReadsThatAreToGoToThePrimaryNeedItsFactory() {
    Settings before =
        Settings.configure(
            held -> held.withBarriers(ReadBarriers.AUTO).withOnStale(OnStale.PRIMARY));
    try {
      application
          .withPropertyValues(RULE + "?reads_from=replica")
          .run(
              context ->
                  assertThat(context)
                      .getFailure()
                      .rootCause()
                      .hasMessageContaining("on_stale=primary needs")); // The factory of Jedis.
      ApplicationContextRunner lettuce =
          new ApplicationContextRunner()
              .withConfiguration(AutoConfigurations.of(AntipodeRedisAutoConfiguration.class))
              .withBean("far", RedisConnectionFactory.class, RedisFactoriesTest::lettuce)
              .withPropertyValues("antipode.redis.factories.far.reads-from=replica")
              .withPropertyValues("antipode.redis.factories.far.datastore=feed");
      lettuce.run(
          context ->
              assertThat(context).getFailure().hasMessageContaining("the primary of feed/0"));
      lettuce
          .withBean("near", RedisConnectionFactory.class, RedisFactoriesTest::lettuce)
          .withPropertyValues("antipode.redis.factories.near.datastore=feed")
          .run(context -> assertThat(context).hasNotFailed());
    } finally {
      Settings unused = Settings.configure(held -> before);
    }
  }

  @Test
  void aFactoryWithoutADatastoreEndsTheStart() {
    application
        .withPropertyValues("antipode.redis.factories.near.reads-from=replica")
        .run(
            context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining(".datastore"));
  }

  @Test
  void aNameThatIsNoFactorysEndsTheStart() {
    application
        .withPropertyValues("antipode.redis.factories.far.datastore=posts")
        .run(
            context ->
                assertThat(context)
                    .getFailure()
                    .hasMessage(
                        "antipode.redis.factories.far names no bean of the type"
                            + " RedisConnectionFactory; there are near, old, others"));
  }

  @Test
  void aFactoryWhoseReadsGoElsewhereEndsTheStart() {
    application
        .withBean(
            "spread",
            RedisConnectionFactory.class,
            () ->
                new LettuceConnectionFactory(
                    SERVER,
                    LettuceClientConfiguration.builder()
                        .readFrom(ReadFrom.REPLICA_PREFERRED)
                        .build()))
        .withPropertyValues("antipode.redis.factories.spread.datastore=posts")
        .run(
            context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining("one server"));
  }
}
