package io.antipode.postgresql;

import io.antipode.ConfigurationException;
import io.antipode.jdbc.ObservedRows;
import io.antipode.lineage.Lineage;
import io.antipode.postgresql.Link.State;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import net.ttddyy.dsproxy.proxy.ResultSetProxyLogic;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGResultSetMetaData;

/**
 * What one connection has to do for the lineages of rows. Before a statement that may write, its
 * setting gets the lineage, which triggers store. The keys of rows that the application sees are
 * noted, and asked for before the connection's next statement, or as soon as somebody needs to know
 * what the rows depend on.
 */
final class RowLineages {
  private static final Set<Effect> WRITING = Set.of(Effect.WRITES, Effect.CALLS);

  /** What may be about rows of a table that the text does not name. */
  private static final Set<Effect> UNNAMED = Set.of(Effect.CALLS, Effect.FETCHES);

  private static final Set<Effect> TAKES_SNAPSHOT =
      Set.of(Effect.READS, Effect.WRITES, Effect.CALLS, Effect.COMMITS_INSIDE);

  /** After these a row that was read may be gone for the session itself. */
  private static final Set<Effect> MAY_DELETE =
      Set.of(
          Effect.COMMITS, Effect.ENDS, Effect.SEVERAL, Effect.FETCHES, Effect.WRITES, Effect.CALLS);

  private final PostgreSqlShim shim;
  private final StoredTables tables;
  private final Link link;
  private final LineageSetting setting;

  /** What was sent by which statement, whose results the application may take later. */
  private final Map<Statement, Made> made = new WeakHashMap<>();

  private Sent last = Sent.NOTHING;

  /**
   * A call that was made.
   *
   * @param deletions how many there were by then
   */
  private record Made(Sent sent, long deletions) {}

  /** Whether the call in flight reads rows of the tables. */
  private boolean isDue;

  /** What it reads, by names of tables, that no result has shown so far. */
  private Map<String, Integer> unshown = Map.of();

  /** Counts what may have deleted rows that were read before. */
  private long deletions;

  private NotedRows noted;
  private boolean isEnded;

  RowLineages(PostgreSqlShim shim, StoredTables tables, Link link, Session session) {
    this.shim = shim;
    this.tables = tables;
    this.link = link;
    this.setting = new LineageSetting(shim, link, session);
    this.noted = new NotedRows(shim, tables, link);
  }

  /** Returns which tables a text names. */
  Mentions mentions(String sql) {
    return Mentions.of(sql, tables.names());
  }

  private static boolean hasAny(Set<Effect> effects, Set<Effect> some) {
    return !Collections.disjoint(effects, some);
  }

  // Before.

  /**
   * Asks and sets what a call needs.
   *
   * @param statement whose results may be taken; null for none
   * @throws ConfigurationException if the tables keep no lineages, or a pooler is in between where
   *     the setting of a session would be needed
   */
  void before(Sent call, @Nullable Statement statement) throws SQLException {
    settle();
    last = call;
    isDue = false;
    Set<Effect> effects = call.effects();
    Mentions said = call.said();
    if (hasAny(effects, MAY_DELETE)) {
      deletions++;
    }
    if (statement != null) {
      made.put(statement, new Made(call, deletions));
    }
    State state = link.state();
    if (state == State.FAILED || state == State.LOST) {
      return;
    }
    boolean isNamed = !said.all().isEmpty();
    if (!said.defines() && !isNamed) {
      isNamed = throughView(call, state);
    }
    if (!said.defines()) {
      // LOCK TABLE takes no snapshot, so nothing before it may.
      if (state == State.IDLE || hasAny(effects, TAKES_SNAPSHOT)) {
        check(!said.all().isEmpty(), effects);
      }
      boolean isWithin = state == State.OPEN || link.opens();
      boolean concerns = isNamed || isWithin || effects.contains(Effect.CALLS) || setting.isSet();
      if (hasAny(effects, WRITING) && concerns && !setting.set(isNamed, isWithin)) {
        tables.countUnstored("a write outside of a transaction");
      }
    }
    boolean isReading = !said.all().isEmpty() && effects.contains(Effect.READS);
    if (shim.takesReads() && isReading && !said.isOwn()) {
      isDue = true;
      unshown = said.sources();
    }
  }

  /** Returns whether a call reads or writes rows through a view; what it reads is counted. */
  private boolean throughView(Sent call, State state) {
    if (state == State.IDLE && hasAny(call.effects(), TAKES_SNAPSHOT)) {
      tables.checkViews(link); // In a transaction that would take its snapshot.
    }
    Mentions through = tables.views(call.sql());
    boolean isReading = call.effects().contains(Effect.READS) && !through.isOwn();
    if (!through.all().isEmpty() && shim.takesReads() && isReading) {
      tables.countUnread(call.sql());
    }
    return !through.all().isEmpty();
  }

  private void check(boolean isNamed, Set<Effect> effects) throws SQLException {
    if (isNamed) {
      tables.check(link);
    } else if (hasAny(effects, UNNAMED)) {
      try {
        tables.check(link);
      } catch (ConfigurationException error) {
        // It need not be about these tables: perhaps it is what migrates them.
      }
    }
  }

  // After.

  /** A statement, or a call that sends some, was answered. */
  void after(boolean hasFailed) {
    Set<Effect> effects = last.effects();
    setting.after(last.said(), effects, hasFailed);
    State state = link.state();
    if (state == State.IDLE || state == State.LOST) {
      deletions++;
    }
    if (last.said().defines()) {
      tables.forget();
    }
    if (hasFailed) {
      unshown = Map.of();
    } else if (isDue) {
      note(Map.of(), false, false);
    }
    isDue = false;
  }

  /** The client itself goes back to a savepoint. */
  void wentBack() {
    setting.wentBack();
  }

  /**
   * The application gives the connection back.
   *
   * @param isAlive whether it can still be asked
   */
  void end(boolean isAlive) {
    if (isAlive) {
      settle();
      setting.end();
    }
    isEnded = true;
  }

  /** Asks what was put off, before the connection is used for something else. */
  private void settle() {
    if (!unshown.isEmpty()) { // No result was taken, or there was none.
      tables.countUnread(last.sql());
      unshown = Map.of();
    }
    if (noted.isUsed()) {
      Lineage unused = noted.get();
    }
  }

  private void note(Map<StoredTable, Set<List<String>>> keys, boolean isShown, boolean isLater) {
    if (Scope.currentOrNull() == null) {
      return; // Nobody asks.
    }
    if (isEnded) { // Somebody else may have the connection.
      Recording.recordRead(shim.unsampledRead());
      return;
    }
    while (!noted.take(keys, isShown, isLater)) {
      noted = new NotedRows(shim, tables, link);
    }
    Recording.deferRead(noted); // In whatever scope the application is by now.
  }

  /** It is not known which rows a result shows. */
  private void unseen(String sql) {
    tables.countUnread(sql);
    Recording.recordRead(shim.unsampledRead());
  }

  // What is shown.

  /** Returns what observes a result; null where it shows no row of the tables with its key. */
  @Nullable Shown shown(ResultSet rows) {
    if (!shim.takesReads()) {
      return null;
    }
    Sent of = last;
    try {
      Made call = made.getOrDefault(rows.getStatement(), new Made(last, deletions));
      of = call.sent();
      boolean isNamed = !of.said().all().isEmpty();
      if (of.said().isOwn() || !(isNamed || hasAny(of.effects(), UNNAMED))) {
        return null;
      }
      Map<StoredTable, List<List<Integer>>> places = places(rows.getMetaData());
      if (of.equals(last)) {
        unshown = Map.of();
      }
      seek(of, places.keySet());
      return places.isEmpty()
          ? null
          : new Shown(of.sql(), places, call.deletions(), hasAny(of.effects(), MAY_DELETE));
    } catch (SQLException error) {
      unseen(of.sql());
      return null;
    }
  }

  /** Returns, of the tables whose whole key is shown, the columns that are each part of it. */
  private Map<StoredTable, List<List<Integer>>> places(ResultSetMetaData columns)
      throws SQLException {
    PGResultSetMetaData bases = columns.unwrap(PGResultSetMetaData.class);
    if (link.opens() && link.state() != State.OPEN) {
      throw new SQLException("the driver would begin a transaction to ask what columns are");
    }
    Map<StoredTable, List<List<Integer>>> found = new HashMap<>();
    for (StoredTable table : tables.described()) {
      List<List<Integer>> key = new ArrayList<>();
      table.columns().forEach(unused -> key.add(new ArrayList<>()));
      for (int nth = 1; nth <= columns.getColumnCount(); nth++) {
        if (bases.getBaseTableName(nth).equals(table.name())
            && bases.getBaseSchemaName(nth).equals(table.schema())) {
          int part = table.columns().indexOf(bases.getBaseColumnName(nth));
          if (part >= 0) {
            key.get(part).add(nth);
          }
        }
      }
      if (key.stream().noneMatch(List::isEmpty)) {
        found.put(table, key);
      }
    }
    return found;
  }

  /** Notes the keys that a statement compares, and counts what its result does not show. */
  private void seek(Sent of, Set<StoredTable> whole) {
    Map<String, Integer> named = of.said().all();
    Map<StoredTable, Set<List<String>>> keys = new HashMap<>();
    Set<String> shown = new HashSet<>();
    whole.forEach(table -> shown.add(table.named()));
    boolean isAll =
        named.entrySet().stream()
            .allMatch(each -> each.getValue() == 1 && shown.contains(each.getKey()));
    for (StoredTable table : tables.described()) {
      if (named.containsKey(table.named())) {
        Sought sought = Sought.of(of.sql(), of.parameters(), table);
        isAll &= sought.isAll();
        keys.put(table, new HashSet<>(sought.keys()));
      }
    }
    if (!isAll) {
      tables.countUnread(of.sql());
    }
    if (!keys.isEmpty()) {
      note(keys, false, false);
    }
  }

  /** The rows of one result, as the application comes to them. */
  final class Shown {
    private final String sql;
    private final Map<StoredTable, List<List<Integer>>> places;

    /** How many deletions there were before it. */
    private final long before;

    private final boolean mayDelete;

    Shown(
        String sql, Map<StoredTable, List<List<Integer>>> places, long before, boolean mayDelete) {
      this.sql = sql;
      this.places = places;
      this.before = before;
      this.mayDelete = mayDelete;
    }

    /** Returns the result as the application gets it. */
    ResultSetProxyLogic of(ResultSet rows, ResultSetProxyLogic plain) {
      return new ObservedRows(plain) {
        @Override
        protected void moved(boolean isThere) {
          if (isThere) {
            row(rows);
          }
        }
      };
    }

    private void row(ResultSet rows) {
      try {
        Map<StoredTable, Set<List<String>>> keys = new HashMap<>();
        for (Map.Entry<StoredTable, List<List<Integer>>> each : places.entrySet()) {
          keys.put(each.getKey(), keys(rows, each.getKey(), each.getValue()));
        }
        note(keys, true, mayDelete || before != deletions);
        if (noted.isFull()) {
          settle();
        }
      } catch (SQLException error) {
        unseen(sql);
      }
    }
  }

  /** Returns the keys of a row; none where an outer join found no row. */
  private static Set<List<String>> keys(
      ResultSet rows, StoredTable table, List<List<Integer>> places) throws SQLException {
    List<List<String>> keys = List.of(List.of());
    for (int part = 0; part < places.size(); part++) {
      List<List<String>> longer = new ArrayList<>();
      for (int column : places.get(part)) {
        String given = rows.getString(column);
        String value = given == null ? null : Sought.spelled(given, table.types().get(part));
        if (value != null) {
          for (List<String> begun : keys) {
            List<String> one = new ArrayList<>(begun);
            one.add(value);
            longer.add(one);
          }
        }
      }
      keys = longer;
    }
    return new HashSet<>(keys);
  }
}
