import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.BarrierTimeoutException;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.ReadsFrom;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.mysql.MySqlShim;
import io.antipode.request.ScopeBlock;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import javax.sql.DataSource;

/** Reads that wait in pools of HikariCP, of a primary and of a replica. */
public final class PoolProgram {
  private static final Duration LONG = Duration.ofSeconds(30);
  private static final String READ = "SELECT body FROM pooled WHERE id = 1";
  private static final String WRITE =
      "INSERT INTO pooled VALUES (1, '0', 0) ON DUPLICATE KEY UPDATE n = n + 1";

  /** What both drivers say of a statement that was ended. */
  private static final String INTERRUPTED = "70100";

  private static final Set<Thread.State> WAITING =
      Set.of(Thread.State.WAITING, Thread.State.TIMED_WAITING);

  private static MySqlShim there;
  private static MySqlShim here;
  private static String replica;
  private static DataSource writes;

  private interface Check {
    void run() throws Exception;
  }

  public static void main(String[] args) throws Exception {
    replica = args[1];
    there = MySqlShim.builder("posts", args[0]).user("app", "app").register();
    here =
        MySqlShim.builder("posts", args[1])
            .user("app", "app")
            .readsFrom(ReadsFrom.REPLICA)
            .register();
    Map<String, Check> checks =
        Map.of(
            "pooled", PoolProgram::pooled,
            "half", PoolProgram::half,
            "limited", PoolProgram::limited,
            "cancelled", PoolProgram::cancelled);
    try (HikariDataSource primary = pool(args[0], 1)) {
      writes = there.instrument(primary);
      write("CREATE TABLE IF NOT EXISTS pooled (id INT PRIMARY KEY, body VARCHAR(9), n INT)");
      checks.get(args[2]).run();
    } finally {
      here.close();
      there.close();
    }
  }

  private static HikariDataSource pool(String url, int connections) {
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(url);
    config.setUsername("app");
    config.setPassword("app");
    config.setMaximumPoolSize(connections);
    config.setConnectionTimeout(LONG.toMillis());
    return new HikariDataSource(config);
  }

  private static void same(Object found, Object expected) {
    if (!expected.equals(found)) {
      throw new AssertionError(found + " instead of " + expected);
    }
  }

  private static void write(String sql) throws SQLException {
    try (Connection connection = writes.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  /** Returns what is visible once there is another write. */
  private static Lineage ahead() throws SQLException {
    try (ScopeBlock request = Antipode.scope()) {
      write(WRITE);
      Barriers.barrier(BarrierOptions.timeout(LONG));
      WriteId write = Antipode.current().writes().get(0);
      return Lineage.of(WriteId.of("posts", write.key(), write.version() + 1));
    }
  }

  private static String read(Statement statement) throws SQLException {
    try (ResultSet rows = statement.executeQuery(READ)) {
      rows.next();
      return rows.getString(1);
    }
  }

  private static String read(DataSource pool) throws SQLException {
    try (Connection connection = pool.getConnection();
        Statement statement = connection.createStatement()) {
      return read(statement);
    }
  }

  private static void barrier() {
    Barriers.barrier(BarrierOptions.timeout(LONG).atRead());
  }

  /** Runs something in threads; returns once so many of them wait, and the others are over. */
  private static List<FutureTask<String>> waiting(int threads, int left, Callable<String> task)
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

  private static Throwable error(FutureTask<String> task) throws InterruptedException {
    try {
      throw new AssertionError(task.get());
    } catch (ExecutionException error) {
      return error.getCause();
    }
  }

  /** Beside 50 requests that wait, on a pool of 2, one without dependencies passes. */
  private static void pooled() throws Exception {
    Lineage ahead = ahead();
    try (HikariDataSource plain = pool(replica, 2)) {
      DataSource reads = here.instrument(plain);
      List<FutureTask<String>> all =
          waiting(
              50,
              50,
              () -> {
                try (ScopeBlock request = Antipode.scope(ahead)) {
                  barrier();
                  return read(reads);
                }
              });
      try (ScopeBlock another = Antipode.scope()) {
        same(read(reads), "0");
      }
      same(all.stream().noneMatch(FutureTask::isDone), true);
      write(WRITE);
      for (FutureTask<String> each : all) {
        same(each.get(), "0");
      }
    }
  }

  /** Of four connections that were taken before the barrier two wait; others time out at once. */
  private static void half() throws Exception {
    Lineage ahead = ahead();
    try (HikariDataSource plain = pool(replica, 4)) {
      DataSource reads = here.instrument(plain);
      CyclicBarrier taken = new CyclicBarrier(4);
      List<FutureTask<String>> all =
          waiting(
              4,
              2,
              () -> {
                try (ScopeBlock request = Antipode.scope(ahead);
                    Connection connection = reads.getConnection();
                    Statement statement = connection.createStatement()) {
                  taken.await();
                  barrier();
                  return read(statement);
                }
              });
      List<FutureTask<String>> refused = all.stream().filter(FutureTask::isDone).toList();
      for (FutureTask<String> each : refused) {
        same(error(each).getClass(), BarrierTimeoutException.class);
      }
      try (ScopeBlock another = Antipode.scope()) {
        same(read(reads), "0");
      }
      write(WRITE);
      for (FutureTask<String> each : all) {
        same(refused.contains(each) ? "0" : each.get(), "0");
      }
    }
  }

  /** A query timeout ends a read that waits, and the connection goes on. */
  private static void limited() throws Exception {
    Lineage ahead = ahead();
    try (HikariDataSource plain = pool(replica, 1);
        ScopeBlock request = Antipode.scope(ahead);
        Connection connection = here.instrument(plain).getConnection();
        Statement statement = connection.createStatement()) {
      barrier();
      statement.setQueryTimeout(1);
      try {
        throw new AssertionError(read(statement));
      } catch (SQLTimeoutException over) {
        same(over.getSQLState(), INTERRUPTED);
      }
      write(WRITE);
      statement.setQueryTimeout(0);
      same(read(statement), "0");
    }
  }

  /** So does a cancel in another thread. */
  private static void cancelled() throws Exception {
    Lineage ahead = ahead();
    try (HikariDataSource plain = pool(replica, 1);
        Connection connection = here.instrument(plain).getConnection();
        Statement statement = connection.createStatement()) {
      FutureTask<String> held =
          waiting(
                  1,
                  1,
                  () -> {
                    try (ScopeBlock request = Antipode.scope(ahead)) {
                      barrier();
                      return read(statement);
                    }
                  })
              .get(0);
      while (!held.isDone()) { // Before it waits there is nothing to cancel.
        statement.cancel();
        Thread.sleep(10);
      }
      same(((SQLException) error(held)).getSQLState(), INTERRUPTED);
      write(WRITE);
      try (ScopeBlock request = Antipode.scope(ahead)) {
        barrier();
        same(read(statement), "0");
      }
    }
  }
}
