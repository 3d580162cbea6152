package io.antipode.postgresql;

import io.antipode.jdbc.Table2;
import io.antipode.lineage.Lineage;
import io.antipode.postgresql.Link.State;
import io.antipode.runtime.Counts;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Rows that the application saw, or looked for, whose lineages are asked for together, with a
 * position that covers the reads: by whoever needs them first. Thread-safe.
 *
 * <p>What an open transaction asks is within a savepoint: a question that is refused fails nothing
 * of the application's.
 */
final class NotedRows implements Supplier<Lineage> {
  /** How many rows one question is about, and how many are noted before it is asked. */
  private static final int MOST = 1_000;

  private static final String SAVEPOINT = "antipode_lineage";

  private final PostgreSqlShim shim;
  private final StoredTables tables;
  private final Link link;
  private final Map<StoredTable, Set<List<String>>> shown = new HashMap<>();
  private final Map<StoredTable, Set<List<String>>> sought = new HashMap<>();
  private boolean isUsed;

  /** Whether something was done since they were read by what may have deleted them. */
  private boolean isLater;

  private @Nullable Lineage lineage;

  NotedRows(PostgreSqlShim shim, StoredTables tables, Link link) {
    this.shim = shim;
    this.tables = tables;
    this.link = link;
  }

  /**
   * Notes keys of rows; even of none, something was read.
   *
   * @param isShown whether the rows were shown
   * @param isLate whether something was done since then that may have deleted them
   * @return whether it is not too late
   */
  synchronized boolean take(
      Map<StoredTable, Set<List<String>>> keys, boolean isShown, boolean isLate) {
    if (lineage != null) {
      return false;
    }
    isUsed = true;
    isLater |= isLate;
    Map<StoredTable, Set<List<String>>> into = isShown ? shown : sought;
    keys.forEach(
        (table, some) -> {
          boolean unused = into.computeIfAbsent(table, each -> new LinkedHashSet<>()).addAll(some);
        });
    return true;
  }

  /** Returns whether there is something to ask. */
  synchronized boolean isUsed() {
    return isUsed;
  }

  /** Returns whether there is enough for a question. */
  synchronized boolean isFull() {
    return shown.values().stream().anyMatch(each -> each.size() >= MOST);
  }

  @Override
  public synchronized Lineage get() {
    Lineage known = lineage;
    if (known == null) {
      known = asked();
      lineage = known;
    }
    return known;
  }

  private Lineage asked() {
    State state = link.state();
    if (state == State.FAILED || state == State.LOST) {
      return shim.unsampledRead();
    }
    boolean isOpen = state == State.OPEN;
    try {
      List<String> questions = questions(isOpen && !isLater);
      String first = isOpen ? "SAVEPOINT " + SAVEPOINT + "; " : "";
      if (isOpen && questions.isEmpty()) {
        link.send(first);
      }
      Lineage found = Lineage.empty();
      for (String question : questions) {
        found = found.merge(stored(link.ask(first + question).get(0)));
        first = "";
      }
      found = found.merge(shim.covering(link));
      if (isOpen) {
        link.send("RELEASE SAVEPOINT " + SAVEPOINT);
      }
      return found;
    } catch (SQLException | RuntimeException error) {
      if (isOpen) {
        goBack();
      }
      tables.countUnread(String.valueOf(error.getMessage()));
      return shim.unsampledRead();
    }
  }

  private void goBack() {
    if (link.state() == State.FAILED) {
      try {
        link.send("ROLLBACK TO SAVEPOINT " + SAVEPOINT);
      } catch (SQLException error) {
        link.close(); // A COMMIT would roll back without an error.
      }
    }
  }

  private List<String> questions(boolean isSame) throws SQLException {
    sought.forEach((table, keys) -> keys.removeAll(shown.getOrDefault(table, Set.of())));
    List<String> questions = new ArrayList<>();
    for (boolean isShown : List.of(true, false)) {
      for (Map.Entry<StoredTable, Set<List<String>>> each : (isShown ? shown : sought).entrySet()) {
        List<List<String>> all = literals(each.getValue());
        for (int at = 0; at < all.size(); at += MOST) {
          List<List<String>> some = all.subList(at, Math.min(at + MOST, all.size()));
          questions.add(each.getKey().asking(some, isShown, isSame));
        }
      }
    }
    return questions;
  }

  private List<List<String>> literals(Set<List<String>> keys) throws SQLException {
    List<List<String>> all = new ArrayList<>();
    for (List<String> key : keys) {
      List<String> one = new ArrayList<>();
      for (String value : key) {
        one.add(link.literal(value));
      }
      all.add(one);
    }
    return all;
  }

  private Lineage stored(Map<String, String> row) {
    for (int nth = Integer.parseInt(row.getOrDefault("absent", "0")); nth > 0; nth--) {
      Counts.count("companion_absent", shim.datastore());
    }
    String found = row.getOrDefault("lineages", "");
    return found.isEmpty()
        ? Lineage.empty()
        : Table2.stored(shim.datastore(), found.substring(StoredTable.FOUND.length()));
  }
}
