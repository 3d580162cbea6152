package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The connection factories whose connections record writes and hold reads back.
 *
 * @param factories by the name of the {@code RedisConnectionFactory} bean; Boot's own is {@code
 *     redisConnectionFactory}
 */
@ConfigurationProperties("antipode.redis")
public record AntipodeRedisProperties(Map<String, Connections> factories) {
  /** Takes no factories for none. */
  public AntipodeRedisProperties(@Nullable Map<String, Connections> factories) {
    this.factories = factories == null ? Map.of() : Map.copyOf(factories);
  }

  /**
   * The connections of one factory.
   *
   * @param datastore the name that every service spells alike
   * @param readsFrom whether its server is the primary, which is the default, or a replica
   * @param url of that server, where barriers wait, as {@code redis://user:password@host:port}; by
   *     default that of the factory
   */
  public record Connections(
      String datastore, @Nullable ReadsFrom readsFrom, @Nullable String url) {}
}
