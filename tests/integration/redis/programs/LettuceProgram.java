import io.antipode.Antipode;
import io.antipode.ConfigurationException;
import io.antipode.OnStale;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.Places;
import io.antipode.barrier.ReadsFrom;
import io.antipode.barrier.UnmetException;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.redis.RedisShim;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Instrumented connections of Lettuce to a primary and to a replica that lags. */
public final class LettuceProgram {
  private static final Duration LONG = Duration.ofSeconds(20);

  /** How many reads share a connection. */
  private static final int SHARING = 300;

  /** How far ahead of what was written something is waited for: in bytes of the log. */
  private static final int AHEAD = 10_000;

  private static RedisClient client;
  private static RedisURI replica;
  private static RedisShim here;
  private static StatefulRedisConnection<String, String> writer;
  private static StatefulRedisConnection<String, String> reader;
  private static int keys;

  private interface Check {
    void run() throws Exception;
  }

  private interface Read {
    Object of(String key) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    RedisURI primary = RedisURI.create(args[0]);
    replica = RedisURI.create(args[1]);
    client = RedisClient.create();
    RedisShim there = RedisShim.builder("posts", primary).register();
    here = RedisShim.builder("posts", replica).readsFrom(ReadsFrom.REPLICA).register();
    writer = there.instrument(client.connect(primary));
    reader = here.instrument(client.connect(replica));
    Map<String, Check> checks =
        Map.ofEntries(
            Map.entry("held", LettuceProgram::held),
            Map.entry("automatic", LettuceProgram::automatic),
            Map.entry("transactions", LettuceProgram::transactions),
            Map.entry("unknown", LettuceProgram::unknown),
            Map.entry("refused", LettuceProgram::refused),
            Map.entry("order", LettuceProgram::order),
            Map.entry("again", LettuceProgram::again),
            Map.entry("shared", LettuceProgram::shared),
            Map.entry("database", LettuceProgram::database),
            Map.entry("flushes", LettuceProgram::flushes),
            Map.entry("late", LettuceProgram::late),
            Map.entry("moved", LettuceProgram::moved),
            Map.entry("half", LettuceProgram::half),
            Map.entry("places", LettuceProgram::places));
    try {
      checks.get(args[2]).run();
    } finally {
      writer.close();
      reader.close();
      client.shutdown();
      here.close();
      there.close();
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

  /** Every API holds its reads back, and shows what Lettuce shows. */
  private static void held() throws Exception {
    RedisCommands<String, String> sync = reader.sync();
    for (Read read :
        List.<Read>of(
            sync::get,
            key -> reader.async().get(key).get(20, TimeUnit.SECONDS),
            key -> reader.reactive().get(key).block(LONG))) {
      try (ScopeBlock request = Antipode.scope()) {
        String key = "held-" + keys++;
        same(writer.sync().set(key, "new"), "OK");
        same(written(), 1);
        Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
        same(read.of(key), "new");
        same(String.valueOf(read.of("no-such")), "null");
      }
    }
    try (ScopeBlock request = Antipode.scope()) {
      writer.reactive().hset("hash", Map.of("a", "1", "b", "2")).block(LONG);
      writer.async().zadd("sorted", 1.5, "m").get();
      same(written(), 1);
      Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
      same(sync.hgetall("hash"), Map.of("a", "1", "b", "2"));
      same(sync.zscore("sorted", "m"), 1.5);
      same(sync.exists("hash"), 1L);
      same(reader.reactive().hvals("hash").collectList().block(LONG).size(), 2);
      try {
        throw new AssertionError(sync.get("hash"));
      } catch (RedisCommandExecutionException wrongType) {
        same(wrongType.getMessage().startsWith("WRONGTYPE"), true);
      }
    }
  }

  private static void automatic() {
    Settings.configure(
        held -> held.withBarriers(ReadBarriers.AUTO).withAutoTimeout(LONG));
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().set("automatic", "new");
      same(reader.sync().get("automatic"), "new");
    }
  }

  private static void transactions() {
    try (ScopeBlock request = Antipode.scope()) {
      RedisCommands<String, String> sync = writer.sync();
      same(sync.multi(), "OK");
      sync.set("t", "1");
      sync.incr("t");
      TransactionResult done = sync.exec();
      same(done.get(1), 2L);
      same(written(), 1);
      Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
      reader.sync().multi();
      reader.sync().get("t");
      same(reader.sync().exec().get(0), "2");
    }
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().multi();
      writer.sync().get("t");
      same(writer.sync().exec().get(0), "2");
      writer.sync().multi();
      writer.sync().set("t", "x");
      writer.sync().discard();
      same(written(), 0);
    }
  }

  /** A script may write, but for one at a server that takes no writes. */
  private static void unknown() {
    String script = "return redis.call('set', KEYS[1], '1')";
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().eval(script, ScriptOutputType.STATUS, "script");
      same(written(), 1);
    }
    try (ScopeBlock request = Antipode.scope()) {
      reader.sync().eval("return 1", ScriptOutputType.INTEGER);
      same(written(), 0);
    }
  }

  private static void refused() {
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().sadd("set", "m");
    }
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().incr("set");
      throw new AssertionError("no error");
    } catch (RedisCommandExecutionException wrongType) {
      same(written(), 0);
    }
  }

  /** What follows a read that is held back waits behind it. */
  private static void order() throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().set("order", "1");
      Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
      var first = reader.async().get("order");
      var second = reader.async().ping();
      same(first.get(20, TimeUnit.SECONDS), "1");
      same(second.get(20, TimeUnit.SECONDS), "PONG");
    }
  }

  private interface Following {
    void send(RedisAsyncCommands<String, String> commands);
  }

  /** A read that is sent again does not show what was sent after it on its connection. */
  private static void again() throws Exception {
    RedisAsyncCommands<String, String> async = reader.async();
    same(reader.sync().configSet("replica-read-only", "no"), "OK");
    try {
      for (Following following :
          List.<Following>of(
              commands -> commands.set("own", "later"),
              commands -> commands.select(1),
              commands -> commands.eval("return redis.call('del', 'own')", ScriptOutputType.INTEGER),
              LettuceProgram::setInTransaction)) {
        try (ScopeBlock request = Antipode.scope()) {
          Lineage ahead = aheadOf("own", "earlier");
          Barriers.barrier(BarrierOptions.timeout(LONG).withLineage(ahead).atRead());
          var first = async.get("own");
          following.send(async);
          var second = async.select(0);
          var third = async.get("filler");
          writer.sync().set("filler", "x".repeat(AHEAD)); // What was waited for is there now.
          same(first.get(20, TimeUnit.SECONDS), "earlier");
          same(second.get(20, TimeUnit.SECONDS), "OK");
          same(third.get(20, TimeUnit.SECONDS).length(), AHEAD);
        }
      }
    } finally {
      same(reader.sync().configSet("replica-read-only", "yes"), "OK");
    }
  }

  /** Writes; returns what is there once {@link #AHEAD} bytes more were written. */
  private static Lineage aheadOf(String key, String value) throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().set(key, value);
      Barriers.barrier(BarrierOptions.timeout(LONG));
      Lineage ahead = Lineage.empty();
      for (WriteId write : Antipode.current().writes()) {
        ahead = ahead.append(WriteId.of("posts", write.key(), write.version() + AHEAD));
      }
      return ahead;
    }
  }

  /** What would be stale is read at the primary, but for what may write, or belongs here. */
  private static void moved() throws Exception {
    Settings.configure(
        settings ->
            settings
                .withBarriers(ReadBarriers.AUTO)
                .withAutoTimeout(Duration.ofMillis(50))
                .withOnStale(OnStale.PRIMARY));
    Counts.Metric count = new Counts.Metric("reads_at_primary", "posts");
    RedisShim far =
        RedisShim.builder("posts", replica)
            .readsFrom(ReadsFrom.REPLICA)
            .primary(writer)
            .register();
    try (StatefulRedisConnection<String, String> moving = far.instrument(client.connect(replica));
        ScopeBlock request = Antipode.scope()) {
      writer.sync().mset(Map.of("moved", "new", "other", "1"));
      same(moving.sync().get("moved"), "new");
      same(moving.async().strlen("moved").get(20, TimeUnit.SECONDS), 3L);
      same(moving.reactive().mget("moved", "other").collectList().block(LONG).size(), 2);
      same(Counts.all().get(count), 3L);
      fails(() -> moving.sync().eval("return redis.call('get', 'moved')", ScriptOutputType.VALUE));
      moving.sync().watch("moved");
      fails(() -> moving.sync().get("moved"));
      moving.sync().unwatch();
      fails(() -> moving.sync().multi());
      same(moving.sync().get("moved"), "new");
      Barriers.barrier(BarrierOptions.timeout(Duration.ofMillis(100)).atRead());
      same(moving.sync().get("moved"), "new"); // A request that was moved stays at the primary.
      same(Counts.all().get(count), 5L);
      try (ScopeBlock other = Antipode.scope(Antipode.current())) {
        Barriers.barrier(BarrierOptions.timeout(Duration.ofMillis(100)).atRead());
        fails(() -> moving.sync().get("moved"));
      }
      same(Counts.all().get(count), 5L);
    }
    far.close();
    for (Check refused :
        List.<Check>of(
            () -> here.instrument(client.connect(replica)),
            () -> RedisShim.builder("posts", replica).primary(reader).register())) {
      try {
        refused.run();
        throw new AssertionError("no error");
      } catch (ConfigurationException error) {
        same(error.getMessage().contains("primary()"), true);
      }
    }
  }

  private static void fails(Check read) throws Exception {
    try {
      read.run();
      throw new AssertionError("no error");
    } catch (BarrierTimeoutException error) {
      return;
    }
  }

  /** Of four connections of a pool reads that wait keep two, however many wait on each. */
  private static void half() throws Exception {
    Lineage ahead = aheadOf("half", "read");
    Places places = Places.of(() -> 4);
    CountDownLatch refused = new CountDownLatch(2);
    List<RedisFuture<String>> reads = new ArrayList<>();
    List<StatefulRedisConnection<String, String>> pool = new ArrayList<>();
    for (int n = 0; n < 4; n++) {
      pool.add(here.instrument(client.connect(replica), places));
      reads.add(heldOn(pool.get(n), ahead));
      reads.get(n).whenComplete((value, error) -> refused.countDown());
    }
    refused.await();
    List<RedisFuture<String>> waiting =
        new ArrayList<>(reads.stream().filter(each -> !each.isDone()).toList());
    same(waiting.size(), 2);
    waiting.add(heldOn(pool.get(reads.indexOf(waiting.get(0))), ahead));
    for (RedisFuture<String> each : reads) {
      if (!waiting.contains(each)) {
        fails(() -> unwrapped(each));
      }
    }
    writer.sync().set("filler", "x".repeat(AHEAD));
    for (RedisFuture<String> each : waiting) {
      same(each.get(20, TimeUnit.SECONDS), "read");
    }
    waiting.set(0, heldOn(pool.get(3), aheadOf("half", "again"))); // The places are free again.
    writer.sync().set("filler", "x".repeat(AHEAD));
    same(waiting.get(0).get(20, TimeUnit.SECONDS), "again");
    pool.forEach(StatefulRedisConnection::close);
  }

  private static RedisFuture<String> heldOn(
      StatefulRedisConnection<String, String> connection, Lineage ahead) {
    try (ScopeBlock request = Antipode.scope()) {
      Barriers.barrier(BarrierOptions.timeout(LONG).withLineage(ahead).atRead());
      return connection.async().get("half");
    }
  }

  private static void unwrapped(RedisFuture<String> read) throws Exception {
    try {
      throw new AssertionError(read.get(20, TimeUnit.SECONDS));
    } catch (ExecutionException error) {
      throw (Exception) error.getCause();
    }
  }

  private static RedisFuture<String> held(Lineage ahead, String key) throws Exception {
    Barriers.barrier(BarrierOptions.timeout(LONG).withLineage(ahead).atRead());
    return reader.async().get(key);
  }

  /** Many reads that are held back on one connection stop nobody else, and each is answered once. */
  private static void shared() throws Exception {
    Lineage ahead = aheadOf("shared", "read");
    List<RedisFuture<String>> held = new ArrayList<>();
    List<RedisFuture<String>> after = new ArrayList<>();
    for (int n = 0; n < SHARING; n++) {
      try (ScopeBlock request = Antipode.scope()) {
        held.add(held(ahead, "shared"));
        after.add(reader.async().echo("after-" + n));
      }
    }
    try (ScopeBlock another = Antipode.scope()) {
      same(reader.sync().get("shared"), "read");
      same(reader.sync().echo("another"), "another");
      same(reader.sync().eval("return 1", ScriptOutputType.INTEGER).toString(), "1");
    }
    same(reader.sync().echo("without a scope"), "without a scope");
    waitElsewhere();
    for (List<RedisFuture<String>> all : List.of(held, after)) {
      same(all.stream().filter(RedisFuture::isDone).count(), 0L);
    }
    writer.sync().set("filler", "x".repeat(AHEAD));
    for (int n = 0; n < SHARING; n++) {
      same(held.get(n).get(20, TimeUnit.SECONDS), "read");
      same(after.get(n).get(20, TimeUnit.SECONDS), "after-" + n);
    }
  }

  /** Reads that are held wait on the library's own connection: on the shared one they ask seldom. */
  private static void waitElsewhere() {
    long asked = asked();
    long since = System.nanoTime();
    for (int n = 0; n < 2_000; n++) {
      same(reader.sync().echo("plain"), "plain");
    }
    double seconds = (System.nanoTime() - since) / 1e9;
    long more = asked() - asked;
    if (more > (3 + seconds) * SHARING + 200 * seconds) {
      throw new AssertionError(more + " questions in " + seconds + " s");
    }
  }

  /** How often the replica was asked where it stands, or anything like it. */
  private static long asked() {
    String stats = reader.sync().info("commandstats");
    int at = stats.indexOf("cmdstat_info:calls=");
    return Long.parseLong(stats.substring(at).split("[=,]", 3)[1]);
  }

  /** What changes the connection waits for reads of others, and what follows it waits for it. */
  private static void database() throws Exception {
    Lineage ahead = aheadOf("database", "0");
    RedisFuture<String> first;
    RedisFuture<String> selected;
    RedisFuture<String> there;
    try (ScopeBlock request = Antipode.scope()) {
      first = held(ahead, "database");
    }
    try (ScopeBlock another = Antipode.scope()) {
      selected = reader.async().select(1);
    }
    try (ScopeBlock another = Antipode.scope()) {
      there = reader.async().get("database");
    }
    writer.sync().set("filler", "x".repeat(AHEAD));
    same(first.get(20, TimeUnit.SECONDS), "0");
    same(selected.get(20, TimeUnit.SECONDS), "OK");
    same(String.valueOf(there.get(20, TimeUnit.SECONDS)), "null");
    same(reader.sync().select(0), "OK");
  }

  /** Writes of each API, of which a dry run says where they were called. */
  private static void places() throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      same(writer.sync().set("places", "0"), "OK");
      same(writer.async().set("places", "1").get(20, TimeUnit.SECONDS), "OK");
      same(writer.reactive().set("places", "2").block(LONG), "OK");
      writer.sync().multi();
      writer.sync().set("places", "3");
      same(writer.sync().exec().size(), 1);
    }
    String unused = writer.sync().set("places", "outside of a scope");
  }

  private static void setInTransaction(RedisAsyncCommands<String, String> commands) {
    commands.multi();
    commands.set("own", "later");
    commands.exec();
  }

  /** Whoever flushes by hand flushes what is sent later, too. */
  private static void flushes() throws Exception {
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().set("flushed", "1");
      Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
      reader.setAutoFlushCommands(false);
      var first = reader.async().get("flushed");
      var second = reader.async().ping();
      reader.flushCommands();
      same(first.get(20, TimeUnit.SECONDS), "1");
      same(second.get(20, TimeUnit.SECONDS), "PONG");
    }
  }

  /** A read whose server does not come that far in time throws, and the connection goes on. */
  private static void late() {
    try (ScopeBlock request = Antipode.scope()) {
      writer.sync().set("late", "1");
      Barriers.barrier(BarrierOptions.timeout(Duration.ofMillis(100)).atRead());
      try {
        throw new AssertionError(reader.sync().get("late"));
      } catch (BarrierTimeoutException timeout) {
        same(timeout.result().outcomes().size(), 1);
      }
    }
    same(reader.sync().ping(), "PONG");
    try (ScopeBlock request = Antipode.scope()) {
      reader.sync().multi();
      writer.sync().set("late", "2");
      Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
      reader.sync().get("late");
      try { // Nothing can be asked within it.
        throw new AssertionError(reader.sync().exec());
      } catch (UnmetException undecidable) {
        same(undecidable.result().outcomes().size(), 1);
      }
    }
    same(reader.sync().ping(), "PONG");
  }
}
