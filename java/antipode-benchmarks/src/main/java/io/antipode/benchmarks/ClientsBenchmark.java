package io.antipode.benchmarks;

import com.mysql.cj.jdbc.MysqlDataSource;
import io.antipode.Antipode;
import io.antipode.request.ScopeBlock;
import io.antipode.mysql.MySqlShim;
import io.antipode.redis.RedisShim;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Reads by instrumented and by plain clients of real servers of this machine, in a scope that has
 * nothing to wait for. {@code -Dredis.url}, {@code -Dmysql.url}, {@code -Dmysql.user} and {@code
 * -Dmysql.password} say where these are; tools/bench_java.sh starts them.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class ClientsBenchmark {
  private static final String KEY = "post:7";

  /** One connection of Lettuce, and an instrumented one. */
  @State(Scope.Thread)
  public static class Redis {
    private final RedisClient client = RedisClient.create(System.getProperty("redis.url"));
    private final RedisShim shim =
        RedisShim.builder("posts", RedisURI.create(System.getProperty("redis.url"))).register();
    private final StatefulRedisConnection<String, String> plain = client.connect();
    private final StatefulRedisConnection<String, String> ours = shim.instrument(client.connect());
    private ScopeBlock block;

    /** Writes what is read, outside of the scope. */
    @Setup
    public void begin() {
      plain.sync().set(KEY, "hello");
      block = Antipode.scope();
    }

    /** Closes everything. */
    @TearDown
    public void end() {
      block.close();
      ours.close();
      plain.close();
      shim.close();
      client.shutdown(0, 0, TimeUnit.SECONDS);
    }
  }

  /** One connection of Connector/J, and an instrumented one. */
  @State(Scope.Thread)
  public static class MySql {
    private MySqlShim shim;
    private Connection plain;
    private Connection ours;
    private PreparedStatement plainSelect;
    private PreparedStatement oursSelect;
    private ScopeBlock block;

    /** Connects, and writes what is read outside of the scope. */
    @Setup
    public void begin() throws SQLException {
      String user = System.getProperty("mysql.user");
      String password = System.getProperty("mysql.password");
      MysqlDataSource pool = new MysqlDataSource();
      pool.setUrl(System.getProperty("mysql.url") + "?trackSessionState=true");
      pool.setUser(user);
      pool.setPassword(password);
      shim =
          MySqlShim.builder("posts", System.getProperty("mysql.url"))
              .user(user, password)
              .register();
      plain = pool.getConnection();
      try (var statement = plain.createStatement()) {
        statement.execute("CREATE TABLE IF NOT EXISTS bench (k VARCHAR(40) PRIMARY KEY, v TEXT)");
        statement.execute("REPLACE INTO bench VALUES ('" + KEY + "', 'hello')");
      }
      ours = shim.instrument(pool).getConnection();
      plainSelect = plain.prepareStatement("SELECT v FROM bench WHERE k = ?");
      oursSelect = ours.prepareStatement("SELECT v FROM bench WHERE k = ?");
      block = Antipode.scope();
    }

    /** Closes everything. */
    @TearDown
    public void end() throws SQLException {
      block.close();
      ours.close();
      plain.close();
      shim.close();
    }
  }

  @Benchmark
  public static String lettuceGet(Redis redis) {
    return redis.ours.sync().get(KEY);
  }

  @Benchmark
  public static String plainLettuceGet(Redis redis) {
    return redis.plain.sync().get(KEY);
  }

  @Benchmark
  public static String jdbcSelect(MySql mysql) throws SQLException {
    return select(mysql.oursSelect);
  }

  @Benchmark
  public static String plainJdbcSelect(MySql mysql) throws SQLException {
    return select(mysql.plainSelect);
  }

  private static String select(PreparedStatement statement) throws SQLException {
    statement.setString(1, KEY);
    try (ResultSet found = statement.executeQuery()) {
      found.next();
      return found.getString(1);
    }
  }
}
