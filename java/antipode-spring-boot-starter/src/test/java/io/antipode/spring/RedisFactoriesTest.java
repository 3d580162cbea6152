package io.antipode.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.ReadFrom;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Which connection factories the starter instruments. No server is asked. */
class RedisFactoriesTest {
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
