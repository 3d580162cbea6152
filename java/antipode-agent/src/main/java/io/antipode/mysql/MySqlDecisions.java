package io.antipode.mysql;

import io.antipode.barrier.Status;
import io.antipode.jdbc.Superseded;
import io.antipode.jdbc.Table2;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What the shim of MySQL and MariaDB decides without a server: next to what it is made of. */
public final class MySqlDecisions {
  /** The server that polls MariaDB's vectors. */
  private static final long SERVER_ID = 2;

  private MySqlDecisions() {}

  /**
   * A server, as it answers.
   *
   * @param executed MySQL's set; null for a server of MariaDB
   * @param later what it answers when it is asked once more; null for the same
   * @param follows null where the user may not ask
   * @param primaries the primaries that it shows all of; null where the user may not ask
   */
  public record Server(
      @Nullable String executed,
      @Nullable String later,
      String applied,
      String logged,
      boolean isStrict,
      boolean isReadOnly,
      boolean isGroup,
      @Nullable List<Above> follows,
      @Nullable Set<String> primaries) {}

  /**
   * A server that another follows.
   *
   * @param log its UUID, or its id
   * @param refusal why it does not answer; null where it does
   */
  public record Above(
      String log,
      String received,
      boolean isConnected,
      @Nullable String refusal,
      @Nullable Server server) {}

  private static final class Answers implements Servers {
    private final Server first;
    private final List<Above> above = new ArrayList<>();
    private boolean isAsked;

    Answers(Server first) {
      this.first = first;
    }

    private Server at(@Nullable Source source) throws RefusedException {
      if (source == null) {
        return first;
      }
      Above found = above.get(source.port());
      if (found.server == null) {
        throw "unreachable".equals(found.refusal)
            ? RefusedException.passing("unreachable")
            : RefusedException.lasting("denied", 0);
      }
      return found.server;
    }

    @Override
    public ServerState state(@Nullable Source source) throws RefusedException {
      Server server = at(source);
      String executed = server.executed;
      if (source == null && isAsked && server.later != null) {
        executed = server.later;
      }
      isAsked |= source == null;
      try {
        return executed != null
            ? new ServerState.MySql(GtidSet.parse(executed), !server.isReadOnly)
            : new ServerState.MariaDb(
                MariaDbState.parse(server.applied),
                MariaDbState.parse(server.logged),
                !server.isReadOnly,
                SERVER_ID,
                first.isStrict);
      } catch (NoGtidException error) {
        throw new IllegalArgumentException(error);
      }
    }

    @Override
    public List<Source> sources(@Nullable Source source) throws RefusedException {
      Server server = at(source);
      if (server.follows == null) {
        throw RefusedException.lasting("denied", 0);
      }
      List<Source> sources = new ArrayList<>();
      for (Above each : server.follows) {
        above.add(each);
        int port = above.size() - 1;
        sources.add(new Source("above", port, each.log, received(each), "", each.isConnected));
      }
      return sources;
    }

    @Override
    public Set<String> primaries(@Nullable Source source) throws RefusedException {
      Set<String> primaries = at(source).primaries;
      if (primaries == null) {
        throw RefusedException.lasting("denied", 0);
      }
      return primaries;
    }

    @Override
    public String grants() {
      return "REPLICATION CLIENT";
    }

    private Source.Received received(Above each) {
      try {
        return first.executed != null
            ? new Source.Received.MySql(GtidSet.parse(each.received))
            : new Source.Received.MariaDb(MariaDbState.parse(each.received));
      } catch (NoGtidException error) {
        throw new IllegalArgumentException(error);
      }
    }
  }

  /** Returns what a poll says of each write, one poll for each. */
  public static List<Status> poll(Server server, List<WriteId> writes) {
    List<Status> statuses = new ArrayList<>();
    for (WriteId write : writes) {
      try {
        Look.Shown shown = Look.at(new Answers(server), server.isGroup, List.of(write));
        statuses.add(shown.status(write));
      } catch (RefusedException error) {
        throw new IllegalArgumentException(error);
      }
    }
    return statuses;
  }

  /** Sessions with one server, one after another. */
  public static final class Sessions {
    private final Runs runs = new Runs();
    private Flavor flavor = Flavor.MARIADB;

    /** Begins one with a server of MySQL that has executed this set. */
    public void begin(String executed, long groupBlock) {
      flavor = Flavor.MYSQL;
      try {
        runs.learn(GtidSet.parse(executed), groupBlock);
      } catch (NoGtidException error) {
        throw new IllegalArgumentException(error);
      }
    }

    /** Returns the writes of a commit; null for what is no set. */
    public @Nullable List<WriteId> committed(String gtids) {
      try {
        return Positions.minted(flavor, gtids, runs, "posts");
      } catch (NoGtidException error) {
        return null;
      }
    }
  }

  /** Returns what a read may have seen. */
  public static Lineage cover(Map<String, String> asked) {
    Flavor flavor = asked.containsKey("gtid_mode") ? Flavor.MYSQL : Flavor.MARIADB;
    return Positions.covering(flavor, asked, "posts");
  }

  /** Returns the first and last numbers of the runs of each log; null for what is no set. */
  public static @Nullable Map<String, List<List<String>>> gtidSet(String text) {
    Map<String, List<List<String>>> logs = new LinkedHashMap<>();
    try {
      GtidSet.parse(text)
          .logs()
          .forEach((log, runs) -> logs.put(log, runs.stream().map(MySqlDecisions::ends).toList()));
    } catch (NoGtidException error) {
      return null;
    }
    return logs;
  }

  private static List<String> ends(Run run) {
    return List.of(Long.toUnsignedString(run.first()), Long.toUnsignedString(run.last()));
  }

  /** Returns whether a server with these variables can be waited at. */
  public static boolean waits(Map<String, String> variables) {
    return facts(variables).problems().isEmpty();
  }

  /** Returns whether a server with these variables gives its own writes positions. */
  public static boolean numbers(Map<String, String> variables) {
    return facts(variables).lacking().isEmpty();
  }

  private static Facts facts(Map<String, String> variables) {
    try {
      return Facts.of(variables, "1", "");
    } catch (RefusedException error) {
      throw new IllegalArgumentException(error);
    }
  }

  /** Returns what one statement may do, in the words of the vectors. */
  public static List<String> does(String sql) {
    return Statements.effects(sql).stream()
        .filter(each -> each != Effect.CALLS)
        .map(each -> each.name().toLowerCase(Locale.ROOT))
        .sorted()
        .toList();
  }

  /** Returns the functions that a statement calls and that are not built into its server. */
  public static Set<String> calls(String sql, boolean isMySql) {
    return Functions.called(sql, isMySql ? Flavor.MYSQL : Flavor.MARIADB);
  }

  /**
   * Returns whether a statement that reads may write by a view that it names.
   *
   * @param definitions what views are made of, where the server says so
   */
  public static boolean mayWriteByView(
      String sql,
      boolean isMySql,
      Map<String, Optional<String>> definitions,
      Set<String> readonlyFunctions) {
    Listing.Asked server =
        question -> {
          String name = question.replace("SHOW CREATE TABLE ", "").replace("`", "");
          Optional<String> found = definitions.getOrDefault(name, Optional.of(""));
          String text = found.orElseThrow(() -> new SQLException("denied", "42000", 1142));
          return List.of(Map.of("Create View", text));
        };
    Flavor flavor = isMySql ? Flavor.MYSQL : Flavor.MARIADB;
    try {
      return new Views(Listing.ANYTHING).mayWrite(sql, flavor, readonlyFunctions, server);
    } catch (SQLException lost) {
      throw new IllegalArgumentException(lost);
    }
  }

  /** Returns what finds the items that a text supersedes. */
  public static String pattern(String text) {
    return Superseded.pattern(text);
  }

  /** Returns how many lineages a statement shows besides. */
  public static int select(List<String> tables, String sql) {
    Tables.Rewritten shown = new Tables(tables).select(sql);
    return shown == null ? 0 : shown.columns();
  }

  /** Returns the tombstones that a query asks for: tables, each with the values of a key. */
  public static List<List<String>> sought(Map<String, List<String>> keys, String sql) {
    Map<String, Map<String, String>> columns = new LinkedHashMap<>();
    keys.forEach(
        (table, key) -> {
          Map<String, String> plain = new LinkedHashMap<>();
          key.forEach(column -> plain.put(column, ""));
          columns.put(table, plain);
        });
    List<List<String>> found = new ArrayList<>();
    for (Sought sought : new Tables(keys.keySet()).sought(sql, columns)) {
      for (List<Sought.Literal> key : sought.keys()) {
        List<String> row = new ArrayList<>(List.of(sought.table()));
        key.forEach(value -> row.add(value.sent()));
        found.add(row);
      }
    }
    return found;
  }

  /** Returns the lineage of the column with a row. */
  public static Lineage found(String column) {
    return Table2.stored("posts", column);
  }
}
