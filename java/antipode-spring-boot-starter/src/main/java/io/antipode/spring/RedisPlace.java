package io.antipode.spring;

import io.antipode.spring.DatastoreRule.Place;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisNode;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisSocketConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/**
 * Where a factory connects to.
 *
 * @param database its number; null where that is not known
 */
record RedisPlace(List<Place> places, @Nullable String database) {
  /** Returns that of a factory; nowhere for an unknown kind of it. */
  static RedisPlace of(Object factory) {
    if (factory instanceof LettuceConnectionFactory lettuce) {
      return of(
          lettuce.isClusterAware() ? lettuce.getClusterConfiguration() : null,
          lettuce.isRedisSentinelAware() ? lettuce.getSentinelConfiguration() : null,
          lettuce.getSocketConfiguration(),
          lettuce.getStandaloneConfiguration());
    }
    return RedisInstrumentation.HAS_JEDIS ? OfJedis.of(factory) : new RedisPlace(List.of(), null);
  }

  private static RedisPlace of(
      @Nullable RedisClusterConfiguration cluster,
      @Nullable RedisSentinelConfiguration sentinels,
      @Nullable RedisSocketConfiguration socket,
      @Nullable RedisStandaloneConfiguration server) {
    if (cluster != null) {
      return new RedisPlace(
          cluster.getClusterNodes().stream()
              .map(node -> Place.of(node.getHost(), node.getPort() == null ? 0 : node.getPort()))
              .toList(),
          "0");
    }
    if (sentinels != null) {
      String service = sentinels.getMaster() == null ? "" : sentinels.getMaster().getName();
      List<Place> places = new ArrayList<>();
      for (RedisNode node : sentinels.getSentinels()) {
        int port = node.getPort() == null ? DatastoreRules.SENTINEL_PORT : node.getPort();
        places.add(Place.ofSentinels(service, Place.of(node.getHost(), port)));
      }
      places.add(Place.ofSentinels(service));
      return new RedisPlace(List.copyOf(places), Integer.toString(sentinels.getDatabase()));
    }
    if (socket != null) {
      return new RedisPlace(
          List.of(new Place(socket.getSocket(), 0)), Integer.toString(socket.getDatabase()));
    }
    return server == null
        ? new RedisPlace(List.of(), null)
        : new RedisPlace(
            List.of(Place.of(server.getHostName(), server.getPort())),
            Integer.toString(server.getDatabase()));
  }

  /** What is known of Jedis, which may not be there. */
  private static final class OfJedis {
    static RedisPlace of(Object factory) {
      return factory instanceof JedisConnectionFactory jedis
          ? RedisPlace.of(
              jedis.isRedisClusterAware() ? jedis.getClusterConfiguration() : null,
              jedis.isRedisSentinelAware() ? jedis.getSentinelConfiguration() : null,
              null,
              jedis.getStandaloneConfiguration())
          : new RedisPlace(List.of(), null);
    }
  }
}
