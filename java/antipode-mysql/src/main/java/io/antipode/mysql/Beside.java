package io.antipode.mysql;

import io.antipode.Antipode;
import io.antipode.Settings;
import io.antipode.jdbc.Superseded;
import io.antipode.jdbc.Table2;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import io.antipode.runtime.Time;
import java.io.InputStream;
import java.io.Reader;
import java.lang.reflect.InvocationTargetException;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Supplier;
import net.ttddyy.dsproxy.QueryInfo;
import net.ttddyy.dsproxy.proxy.ParameterSetOperation;
import net.ttddyy.dsproxy.proxy.ResultSetProxyLogic;
import org.jspecify.annotations.Nullable;

/**
 * What a connection, while the application has it, does for stored lineages of the rows of the
 * application's own tables. Before a statement that may write to one the session's variables get
 * the lineage, which triggers store; one that shows rows shows their lineages, too.
 */
final class Beside {
  /** How many different texts of rows are distinguished. */
  private static final int MOST_TEXTS = 4_096;

  /** How much of a statement a line of the log names. */
  private static final int LONGEST_NAME = 40;

  private final MySqlShim shim;
  private final Wire wire;
  private final Tap tap;
  private final Migrated migrated;

  /** What was asked by which statement, for rows that are not there. */
  private final Map<Statement, QueryInfo> asked = new WeakHashMap<>();

  /** The lineage that the session's variables hold; empty where nobody knows. */
  private String set = "";

  private @Nullable Cover cover;

  /** Whether the statement in flight reads, and shows no lineages. */
  private boolean isDue;

  Beside(MySqlShim shim, Wire wire, Tap tap, Migrated migrated) {
    this.shim = shim;
    this.wire = wire;
    this.tap = tap;
    this.migrated = migrated;
  }

  private Tables tables() {
    return migrated.tables();
  }

  /** Returns a statement with the lineages of its rows, where these can be shown. */
  String reading(String sql) throws SQLException {
    if (!shim.takesReads() || !tables().areMentioned(sql)) {
      return sql;
    }
    Tables.@Nullable Rewritten rewritten = tables().select(sql);
    return rewritten == null || !isReady() ? sql : rewritten.sql();
  }

  /** Makes sure, once for each server, that its tables can keep lineages. */
  private boolean isReady() throws SQLException {
    Facts facts = tap.facts();
    if (facts == null) {
      return false;
    }
    if (!migrated.isChecked(facts)) {
      Link link = Link.on(wire.connection(), facts);
      boolean unused =
          link.aside(
              tap.session(),
              () -> {
                migrated.check(link, facts);
                return true;
              });
    }
    return true;
  }

  /** Lets the rows that a statement is about to write get the lineage of now. */
  void before(Statement statement, List<QueryInfo> queries, Set<Effect> effects)
      throws SQLException {
    isDue = false;
    seeViews();
    if (effects.containsAll(Tap.DEFINES)) {
      migrated.forgetViews();
    }
    List<QueryInfo> ours =
        queries.stream().filter(each -> migrated.areMentioned(each.getQuery())).toList();
    if (ours.isEmpty()) {
      // What calls something may write there all the same, and so may, by a trigger, what writes
      // elsewhere: while the variables hold a lineage it would be the wrong one.
      boolean calls = effects.contains(Effect.CALLS) || effects.containsAll(Session.ANYTHING);
      if (calls || (effects.contains(Effect.WRITES) && tap.mayHoldLineage())) {
        set();
      }
      return;
    }
    if (effects.contains(Effect.WRITES)) {
      store(ours.get(0).getQuery());
    }
    if (effects.contains(Effect.READS)) {
      QueryInfo query = ours.get(0);
      asked.put(statement, query);
      if (shim.takesReads() && !query.getQuery().contains(Tables.SHOWN)) {
        isDue = true;
        unread(query.getQuery());
      }
    }
  }

  /** Finds out which views show rows, where that leaves no snapshot in a transaction. */
  private void seeViews() throws SQLException {
    Facts facts = tap.facts();
    if (facts != null && migrated.areViewsDue() && tap.session().transaction().endsByItself()) {
      Link link = Link.on(wire.connection(), facts);
      boolean unused =
          link.aside(
              tap.session(),
              () -> {
                migrated.checkViews(link);
                return true;
              });
    }
  }

  /** A statement has done what it does; what it showed is covered by a position, in any case. */
  void after() {
    if (isDue) {
      isDue = false;
      cover();
    }
  }

  private void cover() {
    Cover held = cover;
    if (held == null || held.isSettled()) {
      held = new Cover();
      cover = held;
    }
    Recording.deferRead(held);
  }

  /** Lets a row that is written through a result get the lineage of now. */
  void beforeRow() throws SQLException {
    store("a row written through a result");
  }

  /** Lets the session's variables hold the lineage of now. */
  private void store(String what) throws SQLException {
    if (!isReady()) {
      count("unstored_lineage", what, "cannot store its lineage with the rows");
      return;
    }
    set();
  }

  private void set() throws SQLException {
    Recording.recordStored(tap);
    String text = LineageText.stored(Antipode.current());
    if (text.equals(set)) {
      return;
    }
    long until = Time.hour() + Settings.current().horizon().toHours() + 1;
    String pattern = Superseded.pattern(text);
    Link link = Link.on(wire.connection(), tap.facts());
    set = "";
    tap.holdsLineage();
    int unused =
        pattern.isEmpty()
            ? link.update(setting("NULL"), text, until)
            : link.update(setting("?"), text, pattern, until);
    set = text;
  }

  /** The session is gone, with its variables; a driver may begin another one. */
  void lost() {
    set = "";
  }

  private static String setting(String pattern) {
    return "SET @antipode_lineage = ?, @antipode_passed = " + pattern + ", @antipode_until = ?";
  }

  private void unread(String what) {
    count("unread_lineage", what, "does not show what its values depend on elsewhere");
  }

  private void count(String metric, String what, String why) {
    String datastore = shim.datastore();
    String start = what.substring(0, Math.min(what.length(), LONGEST_NAME));
    Counts.count(metric, datastore);
    Counts.logOnce(metric, datastore, start, () -> start + " on " + datastore + " " + why);
  }

  /** Returns a result whose last columns are lineages as the application should see it. */
  ResultSetProxyLogic rows(ResultSet rows, int hidden, ResultSetProxyLogic below)
      throws SQLException {
    return new ShownRows(rows, hidden, below, new Found(asked.get(rows.getStatement())));
  }

  /** Takes in what the application sees of one result. */
  private final class Found implements ShownRows.Shown {
    private final @Nullable QueryInfo query;
    private final Set<String> texts = new HashSet<>();

    Found(@Nullable QueryInfo query) {
      this.query = query;
    }

    @Override
    public void read() {
      cover();
    }

    @Override
    public void row(@Nullable String found) {
      if (found == null) {
        Counts.count("companion_absent", shim.datastore());
      } else if (!texts.contains(found)) {
        if (texts.size() < MOST_TEXTS) {
          texts.add(found);
        }
        Recording.recordRead(Table2.stored(shim.datastore(), found));
      }
    }

    @Override
    public void none() {
      if (query == null) {
        return;
      }
      for (Sought sought : tables().sought(query.getQuery(), migrated.keys())) {
        try {
          buried(Tombstones.of(sought), query);
        } catch (SQLException | ReflectiveOperationException error) {
          unread("a deletion (" + error.getMessage() + ")");
        }
      }
    }
  }

  /** Takes in what the deletions of rows depended on that a query asked for. */
  private void buried(Tombstones question, QueryInfo query)
      throws SQLException, ReflectiveOperationException {
    try (PreparedStatement statement = wire.connection().prepareStatement(question.sql())) {
      Map<Integer, ParameterSetOperation> given = new HashMap<>();
      for (ParameterSetOperation each : parameters(query)) {
        if (each.getArgs()[0] instanceof Integer nth) {
          given.put(nth, each);
        }
      }
      for (int nth = 0; nth < question.parameters().size(); nth++) {
        set(statement, nth + 1, given.get(question.parameters().get(nth)));
      }
      try (ResultSet found = statement.executeQuery()) {
        while (found.next()) {
          String texts = Objects.requireNonNull(ShownRows.text(found.getBytes(1)));
          Recording.recordRead(Table2.stored(shim.datastore(), texts));
        }
      }
    }
  }

  private static List<ParameterSetOperation> parameters(QueryInfo query) {
    return query.getParametersList().isEmpty() ? List.of() : query.getParametersList().get(0);
  }

  /** Sets a parameter as the application did. */
  private static void set(
      PreparedStatement statement, int nth, @Nullable ParameterSetOperation given)
      throws SQLException, ReflectiveOperationException {
    if (given == null) {
      throw new SQLException("a parameter was set in another way");
    }
    Object[] args = given.getArgs().clone();
    if (args[1] instanceof InputStream || args[1] instanceof Reader) {
      throw new SQLException("a stream was read already");
    }
    args[0] = nth;
    try {
      Object unused = given.getMethod().invoke(statement, args);
    } catch (InvocationTargetException error) {
      throw new SQLException(error.getCause());
    }
  }

  /**
   * Samples what reads put off, before somebody else gets the connection.
   *
   * @param isAlive whether it can be asked
   */
  void settle(boolean isAlive) {
    if (cover != null) {
      Lineage unused = cover.settle(isAlive);
    }
  }

  /** What the reads so far may have seen, sampled once, at or after them. Thread-safe. */
  private final class Cover implements Supplier<Lineage> {
    private @Nullable Lineage lineage;

    @Override
    public Lineage get() {
      return settle(true);
    }

    synchronized Lineage settle(boolean isAlive) {
      Lineage sampled = lineage;
      if (sampled == null) {
        sampled = shim.sampled(isAlive ? Link.on(wire.connection(), tap.facts()) : null);
        lineage = sampled;
      }
      return sampled;
    }

    synchronized boolean isSettled() {
      return lineage != null;
    }
  }
}
