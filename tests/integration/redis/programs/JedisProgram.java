import io.antipode.Antipode;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.redis.InstrumentedJedis;
import io.antipode.redis.RedisShim;
import io.antipode.request.ScopeBlock;
import io.lettuce.core.RedisURI;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
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

  /** How far ahead of what was written something is waited for: in bytes of the log. */
  private static final int AHEAD = 10_000;

  private static final Set<Thread.State> WAITING =
      Set.of(Thread.State.WAITING, Thread.State.TIMED_WAITING);
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
    writer = near.pooled(one);
    reader = far.pooled(one);
    Map<String, Check> checks =
        Map.ofEntries(
            Map.entry("held", JedisProgram::held),
            Map.entry("automatic", JedisProgram::automatic),
            Map.entry("pipelines", JedisProgram::pipelines),
            Map.entry("transactions", JedisProgram::transactions),
            Map.entry("unknown", JedisProgram::unknown),
            Map.entry("refused", JedisProgram::refused),
            Map.entry("doubt", JedisProgram::doubt),
            Map.entry("late", JedisProgram::late),
            Map.entry("pooled", JedisProgram::pooled),
            Map.entry("half", JedisProgram::half),
            Map.entry("unasked", JedisProgram::unasked));
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

  /** Returns what is visible once as much is written as the filler has. */
  private static Lineage ahead(String key, String value) {
    try (ScopeBlock request = Antipode.scope()) {
      writer.set(key, value);
      WriteId write = Antipode.current().writes().get(0);
      return Lineage.of(WriteId.of("posts", write.key(), write.version() + AHEAD));
    }
  }

  private static <C> GenericObjectPoolConfig<C> few(int connections) {
    GenericObjectPoolConfig<C> config = new GenericObjectPoolConfig<>();
    config.setMaxTotal(connections);
    config.setMaxWait(LONG);
    return config;
  }

  /** Runs something in so many threads; returns once none of them runs on. */
  private static List<FutureTask<String>> waiting(int threads, Callable<String> task)
      throws InterruptedException {
    return waiting(threads, task, threads);
  }

  /** The same, where only so many of them wait in the end. */
  private static List<FutureTask<String>> waiting(int threads, Callable<String> task, int left)
      throws InterruptedException {
    List<FutureTask<String>> tasks = new ArrayList<>();
    List<Thread> started = new ArrayList<>();
    for (int each = 0; each < threads; each++) {
      tasks.add(new FutureTask<>(task));
      started.add(new Thread(tasks.get(each)));
      started.get(each).setDaemon(true);
      started.get(each).start();
    }
    while (started.stream().filter(each -> WAITING.contains(each.getState())).count() != left
        || tasks.stream().filter(FutureTask::isDone).count() != threads - left) {
      Thread.sleep(1);
    }
    return tasks;
  }

  /** Beside 50 reads that wait, on a pool of 2, one without dependencies passes. */
  private static void pooled() throws Exception {
    try (JedisPooled pooled = far.pooled(few(2));
        JedisPool pool = far.pool(few(2))) {
      Callable<String> client =
          () -> {
            try (Jedis one = pool.getResource()) {
              return one.get("pooled");
            }
          };
      for (Callable<String> read : List.of(() -> pooled.get("pooled"), client)) {
        Lineage ahead = ahead("pooled", "0");
        List<FutureTask<String>> waiting =
            waiting(
                50,
                () -> {
                  try (ScopeBlock request = Antipode.scope(ahead)) {
                    barrier(LONG);
                    return read.call();
                  }
                });
        try (ScopeBlock another = Antipode.scope()) {
          String unused = read.call();
        }
        same(waiting.stream().noneMatch(FutureTask::isDone), true);
        writer.set("filler", "x".repeat(AHEAD));
        for (FutureTask<String> each : waiting) {
          same(each.get(), "0");
        }
      }
    }
  }

  /** Of four clients that were taken before the barrier two wait; the others time out at once. */
  private static void half() throws Exception {
    try (JedisPool pool = far.pool(few(4))) {
      Lineage ahead = ahead("half", "0");
      CyclicBarrier taken = new CyclicBarrier(4);
      List<FutureTask<String>> all =
          waiting(
              4,
              () -> {
                try (Jedis one = pool.getResource();
                    ScopeBlock request = Antipode.scope(ahead)) {
                  taken.await();
                  barrier(LONG);
                  return one.get("half");
                }
              },
              2);
      int refused = 0;
      for (FutureTask<String> each : all) {
        refused += each.isDone() && isTimeout(each) ? 1 : 0;
      }
      same(refused, 2);
      try (ScopeBlock another = Antipode.scope();
          Jedis one = pool.getResource()) {
        String unused = one.get("half");
      }
      writer.set("filler", "x".repeat(AHEAD));
      for (FutureTask<String> each : all) {
        same(isTimeout(each) ? "0" : each.get(), "0");
      }
    }
  }

  private static boolean isTimeout(FutureTask<String> task) throws InterruptedException {
    try {
      String unused = task.get();
      return false;
    } catch (ExecutionException error) {
      same(error.getCause().getClass(), BarrierTimeoutException.class);
      return true;
    }
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
    try (JedisPool pool = far.pool(new JedisPoolConfig());
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
