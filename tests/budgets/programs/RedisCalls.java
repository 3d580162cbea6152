import io.antipode.redis.InstrumentedJedis;
import io.antipode.redis.RedisShim;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import java.net.URI;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;

/** Jedis and Lettuce. A SET's bytes are those of the server's reply to INFO, too, which grows with its log. */
final class RedisCalls {
  private RedisCalls() {}

  static void count(String url) throws Exception {
    try (RedisShim shim = RedisShim.builder("posts", RedisURI.create(url)).register()) {
      countJedis(shim, URI.create(url));
      countLettuce(shim, url);
    }
  }

  private static void countJedis(RedisShim shim, URI address) throws Exception {
    HostAndPort server = new HostAndPort(address.getHost(), address.getPort());
    try (JedisPooled plain = new JedisPooled(server);
        JedisPooled ours =
            InstrumentedJedis.of(shim, server, DefaultJedisClientConfig.builder().build())
                .pooled()) {
      ours.set("budget", "value");
      Counting.compare(
          "Jedis: GET",
          "jedis",
          Counting.release("redis.clients/jedis"),
          () -> ours.get("budget"),
          () -> plain.get("budget"));
    }
  }

  private static void countLettuce(RedisShim shim, String url) throws Exception {
    RedisClient client = RedisClient.create(url);
    StatefulRedisConnection<String, String> plain = client.connect();
    StatefulRedisConnection<String, String> ours = shim.instrument(client.connect());
    Counting.compare(
        "Lettuce: GET",
        "lettuce",
        Counting.release("io.lettuce/lettuce-core"),
        () -> ours.sync().get("budget"),
        () -> plain.sync().get("budget"));
    ours.close();
    plain.close();
    client.shutdown();
  }
}
