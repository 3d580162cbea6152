package io.antipode.postgresql;

import io.antipode.request.Scope;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** What may write in a database, and does not look like it in the text of a query. Thread-safe. */
final class HiddenFunctions {
  /** How long it is remembered which names hide functions: others may change the schema. */
  private static final Duration FRESH = Duration.ofSeconds(60);

  private final Set<String> readonlyFunctions;

  /** Names by which a plain SELECT may write, in small letters, and when that was asked. */
  private record Known(Set<String> names, long atNs) {}

  private volatile @Nullable Known known;

  /** Knows the functions that the application declares to write nothing. */
  HiddenFunctions(Set<String> readonlyFunctions) {
    this.readonlyFunctions = readonlyFunctions;
  }

  /** The schema changes: other names may hide functions. */
  void forget() {
    known = null;
  }

  /** Returns whether a read of these texts may have written, by a view; asks once a minute. */
  boolean mayHaveWritten(Link link, String read) {
    if (Scope.currentOrNull() == null) {
      return false;
    }
    Known names = known;
    if (names == null || System.nanoTime() - names.atNs > FRESH.toNanos()) {
      names = new Known(asked(link), System.nanoTime());
      known = names;
    }
    return names.names.stream().anyMatch(read::contains);
  }

  private Set<String> asked(Link link) {
    try {
      List<Map<String, String>> rows = link.ask(Look.hidden(readonlyFunctions));
      return rows.stream().map(row -> row.getOrDefault("name", "")).collect(Collectors.toSet());
    } catch (SQLException error) {
      return Set.of(""); // Which is in each text.
    }
  }
}
