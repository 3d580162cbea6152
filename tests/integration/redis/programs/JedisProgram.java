import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.ReadBarriers;
import io.antipode.request.ScopeBlock;
import io.antipode.Settings;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.UnmetException;
import io.antipode.redis.InstrumentedJedis;
import io.antipode.redis.RedisShim;
import io.lettuce.core.RedisURI;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.args.FlushMode;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ClientKillParams;

/** Instrumented clients of Jedis of a primary and of a replica that lags. */
public final class JedisProgram {
  private static final Duration LONG = Duration.ofSeconds(20);
  private static final Duration SHORT = Duration.ofMillis(100);
  private static InstrumentedJedis near;
  private static InstrumentedJedis far;
  private static JedisPooled writer;
  private static JedisPooled reader;
  private static int keys;

  private interface Check {
    void run() throws Exception;
  }

  private interface Read {
    Object of(String key);
  }

  public static void main(String[] args) throws Exception {
    RedisShim there = RedisShim.builder("posts", RedisURI.create(args[0])).register();
    RedisShim here =
        RedisShim.builder("posts", RedisURI.create(args[1]))
            .readsFrom(ReadsFrom.REPLICA)
            .register();
    near = instrumented(there, args[0], RedisProtocol.RESP2);
    far = instrumented(here, args[1], RedisProtocol.RESP3);
    ConnectionPoolConfig one = new ConnectionPoolConfig(); // A connection that leaked is missed.
    one.setMaxTotal(1);
    one.setMaxWait(LONG);
    writer = new JedisPooled(one, near.connections());
    reader = new JedisPooled(one, far.connections());
    Map<String, Check> checks =
        Map.of(
            "held", JedisProgram::held,
            "automatic", JedisProgram::automatic,
            "pipelines", JedisProgram::pipelines,
            "transactions", JedisProgram::transactions,
            "unknown", JedisProgram::unknown,
            "refused", JedisProgram::refused,
            "doubt", JedisProgram::doubt,
            "late", JedisProgram::late,
            "unasked", JedisProgram::unasked);
    try {
      checks.get(args[2]).run();
    } finally {
      writer.close();
      reader.close();
      here.close();
      there.close();
    }
  }

  private static InstrumentedJedis instrumented(
      RedisShim shim, String url, RedisProtocol protocol) {
    URI address = URI.create(url);
    return InstrumentedJedis.of(
        shim,
        new HostAndPort(address.getHost(), address.getPort()),
        DefaultJedisClientConfig.builder().protocol(protocol).build());
  }

  private static void same(Object found, Object expected) {
    if (!expected.equals(found)) {
      throw new AssertionError(found + " instead of " + expected);
    }
  }

  private static int written() {
    Lineage lineage = Antipode.current();
    same(lineage.incomplete().size(), 0);
    return lineage.writes().size();
  }

  private static void barrier(Duration timeout) {
    Barriers.barrier(BarrierOptions.timeout(timeout).atRead());
  }

  /** Every client holds its reads back, and shows what Jedis shows. */
  private static void held() {
    try (JedisPool pool = new JedisPool(new JedisPoolConfig(), far.clients());
        Jedis alone = far.jedis();
        Jedis pooled = pool.getResource()) {
      for (Read read : List.<Read>of(reader::get, alone::get, pooled::get)) {
        try (ScopeBlock request = Antipode.scope()) {
          String key = "held-" + keys++;
          same(writer.set(key, "new"), "OK");
          same(written(), 1);
          barrier(LONG);
          same(read.of(key), "new");
          same(String.valueOf(read.of("no-such")), "null");
        }
      }
    }
    try (ScopeBlock request = Antipode.scope()) {
      writer.hset("hash", Map.of("a", "1", "b", "2"));
      writer.zadd("sorted", 1.5, "m");
      same(written(), 1);
      barrier(LONG);
      same(reader.hgetAll("hash"), Map.of("a", "1", "b", "2"));
      same(reader.zscore("sorted", "m"), 1.5);
      try {
        throw new AssertionError(reader.get("hash"));
      } catch (JedisDataException wrongType) {
        same(wrongType.getMessage().startsWith("WRONGTYPE"), true);
      }
    }
  }

  private static void automatic() {
    Settings.configure(held -> held.withBarriers(ReadBarriers.AUTO).withAutoTimeout(LONG));
    try (ScopeBlock request = Antipode.scope()) {
      writer.set("automatic", "new");
      same(reader.get("automatic"), "new");
    }
  }

  /** Replies come in the order of the commands, whatever was asked beside them. */
  private static void pipelines() {
    try (ScopeBlock request = Antipode.scope()) {
      try (AbstractPipeline batch = writer.pipelined()) {
        Response<String> set = batch.set("p", "1");
        Response<Long> wrong = batch.sadd("p", "m");
        Response<Long> second = batch.incr("p");
        Response<Object> script = batch.eval("return redis.call('incr', KEYS[1])", 1, "p");
        batch.sync();
        same(set.get(), "OK");
        same(second.get(), 2L);
        same(script.get(), 3L);
        try {
          throw new AssertionError(wrong.get());
        } catch (JedisDataException wrongType) {
          same(wrongType.getMessage().startsWith("WRONGTYPE"), true);
        }
      }
      same(written(), 1);
      barrier(LONG);
      try (AbstractPipeline batch = reader.pipelined()) {
        Response<String> nothing = batch.get("no-such");
        Response<String> first = batch.get("p");
        Response<Long> length = batch.strlen("p");
        batch.sync();
        same(first.get(), "3");
        same(length.get(), 1L);
        same(String.valueOf(nothing.get()), "null");
      }
    }
  }

  private static void transactions() {
    try (ScopeBlock request = Antipode.scope()) {
      try (AbstractTransaction both = writer.multi()) {
        both.set("t", "1");
        both.incr("t");
        same(both.exec(), List.of("OK", 2L));
      }
      same(written(), 1);
      barrier(LONG);
      try (AbstractTransaction reads = reader.multi()) {
        reads.get("t");
        same(reads.exec(), List.of("2"));
      }
    }
    try (ScopeBlock request = Antipode.scope()) {
      try (AbstractTransaction reads = writer.multi()) {
        reads.get("t");
        same(reads.exec(), List.of("2"));
      }
      try (AbstractTransaction dropped = writer.multi()) {
        dropped.set("t", "x");
        dropped.discard();
      }
      same(written(), 0);
      same(writer.get("t"), "2");
    }
    try (ScopeBlock request = Antipode.scope();
        Jedis alone = near.jedis()) {
      alone.watch("t");
      writer.set("t", "5");
      AbstractTransaction late = alone.multi();
      late.set("t", "6");
      same(String.valueOf(late.exec()), "null");
      same(alone.get("t"), "5");
    }
  }

  /** A script may write, but for one at a server that takes no writes. */
  private static void unknown() {
    try (ScopeBlock request = Antipode.scope()) {
      writer.eval("return redis.call('set', KEYS[1], '1')", 1, "script");
      same(written(), 1);
    }
    try (ScopeBlock request = Antipode.scope()) {
      writer.functionFlush(FlushMode.SYNC);
      writer.functionLoad(
          "#!lua name=own\nredis.register_function('own',"
              + " function(keys) return redis.call('incr', keys[1]) end)");
    }
    try (ScopeBlock request = Antipode.scope()) {
      same(writer.fcall("own", List.of("script"), List.of()), 2L);
      same(written(), 1);
    }
    try (ScopeBlock request = Antipode.scope()) {
      reader.eval("return 1");
      same(written(), 0);
    }
  }

  private static void refused() {
    try (ScopeBlock request = Antipode.scope()) {
      writer.sadd("set", "m");
    }
    try (ScopeBlock request = Antipode.scope()) {
      writer.incr("set");
      throw new AssertionError("no error");
    } catch (JedisDataException wrongType) {
      same(written(), 0);
    }
  }

  /** A write whose reply is lost may have been done. */
  private static void doubt() throws Exception {
    try (ScopeBlock request = Antipode.scope();
        Jedis writing = near.jedis();
        Jedis killing = near.jedis()) {
      long id = writing.clientId();
      Thread killer =
          new Thread(
              () -> {
                while (!killing.clientList(id).contains("cmd=blpop")) {
                  Thread.onSpinWait();
                }
                killing.clientKill(new ClientKillParams().id(String.valueOf(id)));
              });
      killer.start();
      try {
        throw new AssertionError(writing.blpop(0, "empty"));
      } catch (JedisConnectionException lost) {
        same(Antipode.current().incomplete().iterator().next().reason(), "in_doubt");
      }
      killer.join();
    }
  }

  /** A read whose server does not come that far in time throws, and the connection goes on. */
  private static void late() {
    try (ScopeBlock request = Antipode.scope()) {
      writer.set("late", "1");
      barrier(SHORT);
      try {
        throw new AssertionError(reader.get("late"));
      } catch (BarrierTimeoutException timeout) {
        same(timeout.result().outcomes().size(), 1);
      }
      barrier(SHORT);
      try (AbstractTransaction reads = reader.multi()) {
        reads.get("late");
        throw new AssertionError(reads.exec());
      } catch (BarrierTimeoutException timeout) {
        same(timeout.result().outcomes().size(), 1);
      }
    }
    try (ScopeBlock request = Antipode.scope()) {
      AbstractTransaction reads = reader.multi();
      writer.set("late", "2");
      barrier(LONG);
      reads.get("late");
      try (reads) { // Nothing can be asked within it.
        throw new AssertionError(reads.exec());
      } catch (UnmetException undecidable) {
        same(undecidable.result().outcomes().size(), 1);
      }
      barrier(SHORT);
      try (AbstractPipeline batch = reader.pipelined()) {
        Response<Long> heard = batch.publish("nobody", "first");
        try {
          throw new AssertionError(batch.get("late"));
        } catch (BarrierTimeoutException timeout) {
          batch.sync();
          same(heard.get(), 0L);
        }
      }
    }
    same(reader.ping(), "PONG");
  }

  /** Where the address does not pass questions, writes succeed and are marked. */
  private static void unasked() {
    try (ScopeBlock request = Antipode.scope()) {
      same(writer.set("unasked", "1"), "OK");
      same(Antipode.current().incomplete().iterator().next().reason(), "unsampled");
      same(writer.get("unasked"), "1");
    }
  }
}
