import com.sun.management.ThreadMXBean;
import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.redis.InstrumentedJedis;
import io.antipode.redis.RedisShim;
import io.antipode.request.ScopeBlock;
import io.lettuce.core.RedisURI;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;

/** Prints what the library adds to one call as a line of JSON: tests/budgets/test_java.py. */
public final class BudgetsProgram {
  /** After so many calls all caches are filled. */
  private static final int WARM = 30;

  /** What came to the same so often is the count, of at most so many calls. */
  private static final int ALIKE = 15;

  private static final int MOST = 300;
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** What one call came to: bytes in its thread, and threads of the process. */
  private record Count(long bytes, long threads) {}

  public static void main(String[] args) {
    Lineage three = Lineage.of(write("a"), write("b"), write("c"));
    String text = three.serialize();
    core("scope: empty", () -> Antipode.scope().close());
    core("scope: 3 entries", () -> Antipode.scope(three).close());
    core("scope: text of 3 entries", () -> Antipode.scope(text).close());
    core("decode: 3 entries", () -> Lineage.deserialize(text));
    jedis(args[0]);
    System.exit(0);
  }

  private static WriteId write(String name) {
    return WriteId.of(name, "log-" + name, 7).writtenAt(490_000);
  }

  private static void core(String line, Runnable call) {
    print(line, "", steady(call, false), steady(() -> {}, false));
  }

  private static void jedis(String url) {
    URI address = URI.create(url);
    String drivers = "\"jedis\": \"" + release("redis.clients/jedis") + "\"";
    HostAndPort server = new HostAndPort(address.getHost(), address.getPort());
    try (RedisShim shim = RedisShim.builder("posts", RedisURI.create(url)).register();
        JedisPooled plain = new JedisPooled(server);
        JedisPooled ours =
            InstrumentedJedis.of(shim, server, DefaultJedisClientConfig.builder().build())
                .pooled()) {
      // A SET's bytes are those of the server's reply to INFO, too, which grows with its log.
      ours.set("budget", "value");
      print(
          "Jedis: GET",
          drivers,
          steady(() -> ours.get("budget"), true),
          steady(() -> plain.get("budget"), true));
    }
  }

  /** What one call comes to once all is warm, in the scope of a request or in none. */
  private static Count steady(Runnable call, boolean inRequest) {
    Map<Count, Integer> came = new HashMap<>();
    for (int nth = 0; nth < MOST; nth++) {
      Count count;
      if (inRequest) {
        try (ScopeBlock request = Antipode.scope()) {
          count = once(call);
        }
      } else {
        count = once(call);
      }
      if (nth >= WARM && came.merge(count, 1, Integer::sum) == ALIKE) {
        return count;
      }
    }
    throw new IllegalStateException(MOST + " calls came to " + came);
  }

  private static Count once(Runnable call) {
    long threads = THREADS.getTotalStartedThreadCount();
    long bytes = THREADS.getCurrentThreadAllocatedBytes();
    call.run();
    long after = THREADS.getCurrentThreadAllocatedBytes();
    return new Count(after - bytes, THREADS.getTotalStartedThreadCount() - threads);
  }

  private static String release(String artifact) {
    String file = "/META-INF/maven/" + artifact + "/pom.properties";
    try (InputStream written = BudgetsProgram.class.getResourceAsStream(file)) {
      Properties properties = new Properties();
      properties.load(Objects.requireNonNull(written, file));
      return properties.getProperty("version");
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static void print(String line, String drivers, Count ours, Count plain) {
    System.out.printf(
        "{\"line\": \"%s\", \"drivers\": {%s}, \"counts\": {\"bytes\": %d, \"threads\": %d}}%n",
        line, drivers, ours.bytes() - plain.bytes(), ours.threads() - plain.threads());
  }
}
