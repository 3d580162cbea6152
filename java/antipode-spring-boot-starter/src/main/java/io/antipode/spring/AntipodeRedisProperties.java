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
   * @param datastore the name that every service spells alike; by default as {@code
   *     antipode.datastores} names the factory's address
   * @param readsFrom whether its server is the primary, which is the default, or a replica
   * @param url of that server, where barriers wait, as {@code redis://user:password@host:port}; by
   *     default that of the factory
   */
  public record Connections(
      @Nullable String datastore, @Nullable ReadsFrom readsFrom, @Nullable String url) {
    /** Returns what is said of a factory by the name of its bean, and else by its address. */
    static Connections of(@Nullable Connections named, @Nullable DatastoreRule rule) {
      Connections said = named == null ? new Connections(null, null, null) : named;
      if (rule == null || (said.datastore != null && !said.datastore.equals(rule.datastore()))) {
        return said;
      }
      return new Connections(
          rule.datastore(), said.readsFrom == null ? rule.readsFrom() : said.readsFrom, said.url);
    }
  }
}
