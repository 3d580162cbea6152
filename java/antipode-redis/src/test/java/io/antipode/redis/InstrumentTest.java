package io.antipode.redis;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.masterreplica.StatefulRedisMasterReplicaConnection;
import java.lang.reflect.Proxy;
import org.junit.jupiter.api.Test;

/** Which connections of Lettuce are instrumented; those that are, are tested on real servers. */
class InstrumentTest {
  @SuppressWarnings("unchecked")
  private static StatefulRedisConnection<String, String> connection(Class<?> type) {
    return (StatefulRedisConnection<String, String>)
        Proxy.newProxyInstance(
            InstrumentTest.class.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, args) -> null);
  }

  /** Whatever its {@code ReadFrom} is now: the application may set another one later. */
  @Test
  void aConnectionWhoseReadsGoToAServerOfItsChoiceIsRefused() {
    try (RedisShim posts =
        RedisShim.builder("posts", RedisURI.create("redis://localhost:1")).register()) {
      StatefulRedisConnection<String, String> several =
          connection(StatefulRedisMasterReplicaConnection.class);
      assertThatThrownBy(() -> posts.instrument(several))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("ReadFrom")
          .hasMessageContaining("a connection and a shim for each server");
      StatefulRedisConnection<String, String> wrapped = connection(StatefulRedisConnection.class);
      assertThatThrownBy(() -> posts.instrument(wrapped))
          .isInstanceOf(ConfigurationException.class)
          .hasMessageContaining("as RedisClient.connect returns it");
    }
  }
}
