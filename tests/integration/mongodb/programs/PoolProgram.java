import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoCursor;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import com.mongodb.event.CommandListener;
import com.mongodb.event.CommandStartedEvent;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.mongodb.MongoShim;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.bson.Document;

/** Reads that wait in small pools of the driver, of a primary and of a secondary. */
public final class PoolProgram {
  private static final Duration LONG = Duration.ofSeconds(30);
  private static final Set<Thread.State> WAITING =
      Set.of(Thread.State.WAITING, Thread.State.TIMED_WAITING);

  private static MongoShim here;
  private static String secondary;
  private static MongoCollection<Document> writes;

  private interface Check {
    void run() throws Exception;
  }

  public static void main(String[] args) throws Exception {
    secondary = args[1];
    MongoShim there = MongoShim.builder("posts", args[0], "app", "pooled").register();
    here =
        MongoShim.builder("posts", secondary, "app", "pooled")
            .readsFrom(ReadsFrom.REPLICA)
            .register();
    Map<String, Check> checks =
        Map.of(
            "pooled", PoolProgram::pooled, "half", PoolProgram::half, "table2", PoolProgram::table2);
    try (MongoClient client = there.instrument(settings(args[0], 2))) {
      writes = client.getDatabase("app").getCollection("pooled");
      checks.get(args[2]).run();
    } finally {
      here.close();
      there.close();
    }
  }

  private static MongoClientSettings settings(String url, int connections) {
    return MongoClientSettings.builder()
        .applyConnectionString(new ConnectionString(url))
        .applyToConnectionPoolSettings(pool -> pool.maxSize(connections))
        .build();
  }

  private static MongoCollection<Document> notes(MongoClient client) {
    return client.getDatabase("app").getCollection("pooled");
  }

  private static void same(Object found, Object expected) {
    if (!expected.equals(found)) {
      throw new AssertionError(found + " instead of " + expected);
    }
  }

  private static void write() {
    Object unused =
        writes.updateOne(Filters.eq("_id", 1), Updates.inc("n", 1));
  }

  /** Returns what is visible once there is another write. */
  private static Lineage ahead() {
    for (int id : List.of(1, 2)) {
      Object unused =
          writes.updateOne(
              Filters.eq("_id", id), Updates.inc("n", 1), new UpdateOptions().upsert(true));
    }
    try (ScopeBlock request = Antipode.scope()) {
      write();
      Barriers.barrier(BarrierOptions.timeout(LONG));
      WriteId write = Antipode.current().writes().get(0);
      return Lineage.of(WriteId.of("posts", write.key(), write.version() + 1));
    }
  }

  private static void barrier() {
    Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
  }

  /** Runs something in threads; returns once so many of them wait, and the others are over. */
  private static List<FutureTask<Object>> waiting(int threads, int left, Callable<Object> task)
      throws InterruptedException {
    List<FutureTask<Object>> tasks = new ArrayList<>();
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

  /** Beside 50 reads that wait, with 2 connections, one without dependencies passes. */
  private static void pooled() throws Exception {
    try (MongoClient client = here.instrument(settings(secondary, 2))) {
      MongoCollection<Document> reads = notes(client);
      for (Callable<Object> read :
          List.<Callable<Object>>of(
              () -> reads.find(Filters.eq("_id", 1)).first().getInteger("_id"),
              () -> reads.find(Filters.eq("_id", 1)).into(new ArrayList<>()).size(),
              () -> (int) reads.countDocuments(Filters.eq("_id", 1)))) {
        Lineage ahead = ahead();
        List<FutureTask<Object>> all =
            waiting(
                50,
                50,
                () -> {
                  try (ScopeBlock request = Antipode.scope(ahead)) {
                    barrier();
                    return read.call();
                  }
                });
        try (ScopeBlock another = Antipode.scope()) {
          same(read.call(), 1);
        }
        same(all.stream().noneMatch(FutureTask::isDone), true);
        write();
        for (FutureTask<Object> each : all) {
          same(each.get(), 1);
        }
      }
    }
  }

  /** Reads of the shim's own wait without a connection: the server is sent none of them. */
  private static void table2() throws Exception {
    Lineage ahead = ahead();
    List<String> sent = Collections.synchronizedList(new ArrayList<>());
    CommandListener hears =
        new CommandListener() {
          @Override
          public void commandStarted(CommandStartedEvent event) {
            if (event.getCommandName().equals("find")
                && event.getCommand().toJson().contains("afterClusterTime")) {
              sent.add(event.getCommand().toJson());
            }
          }
        };
    MongoClientSettings heard =
        MongoClientSettings.builder(settings(secondary, 2)).addCommandListener(hears).build();
    here.close();
    here =
        MongoShim.builder("posts", heard, "app", "pooled").readsFrom(ReadsFrom.REPLICA).register();
    List<FutureTask<Object>> all =
        waiting(
            20,
            20,
            () -> {
              try (ScopeBlock request = Antipode.scope(ahead)) {
                barrier();
                return here.read("nothing").lineage();
              }
            });
    same(sent, List.of());
    try (ScopeBlock another = Antipode.scope()) {
      same(here.read("nothing").value() == null, true);
    }
    write();
    for (FutureTask<Object> each : all) {
      Object unused = each.get();
    }
  }

  /** Of four cursors that read on after a barrier, with 4 connections, two wait. */
  private static void half() throws Exception {
    Lineage ahead = ahead();
    CyclicBarrier opened = new CyclicBarrier(4);
    try (MongoClient client = here.instrument(settings(secondary, 4))) {
      MongoCollection<Document> reads = notes(client);
      List<FutureTask<Object>> all =
          waiting(
              4,
              2,
              () -> {
                try (ScopeBlock request = Antipode.scope(ahead);
                    MongoCursor<Document> cursor = reads.find().batchSize(1).iterator()) {
                  Document unused = cursor.next();
                  opened.await();
                  barrier();
                  return cursor.next().getInteger("_id");
                }
              });
      List<FutureTask<Object>> refused = all.stream().filter(FutureTask::isDone).toList();
      for (FutureTask<Object> each : refused) {
        same(error(each).getClass(), BarrierTimeoutException.class);
      }
      try (ScopeBlock another = Antipode.scope()) {
        same(reads.find(Filters.eq("_id", 1)).first().getInteger("_id"), 1);
      }
      write();
      for (FutureTask<Object> each : all) {
        same(refused.contains(each) ? 2 : each.get(), 2);
      }
    }
  }

  private static Throwable error(FutureTask<Object> task) throws InterruptedException {
    try {
      throw new AssertionError(task.get());
    } catch (ExecutionException error) {
      return error.getCause();
    }
  }
}
