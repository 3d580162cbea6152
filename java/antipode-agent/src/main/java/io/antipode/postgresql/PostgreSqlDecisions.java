package io.antipode.postgresql;

import io.antipode.barrier.Status;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.sql.SQLException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** What the shim of PostgreSQL decides without a server: next to what it is made of. */
public final class PostgreSqlDecisions {
  private PostgreSqlDecisions() {}

  private static ServerState state(Map<String, String> answer) {
    try {
      return ServerState.of(answer);
    } catch (NoLsnException error) {
      throw new IllegalArgumentException(error);
    }
  }

  /**
   * Returns what one poll says of each write.
   *
   * @param answer as the server answers to the poll
   */
  public static List<Status> poll(Map<String, String> answer, List<WriteId> writes) {
    ServerState state = state(answer);
    return writes.stream().map(write -> state.judge(write).status()).toList();
  }

  /** Returns what a read may have seen. */
  public static Lineage cover(Map<String, String> answer) {
    ServerState state = state(answer);
    Log log = state.covers();
    return log == null
        ? Lineage.empty().marked(new Incomplete("posts", "unsampled"))
        : Lineage.empty().append(WriteId.of("posts", log.key(), state.position()).asCovering());
  }

  /**
   * Returns whether a text that only reads by its words may write.
   *
   * @param catalogue what may write and does not look like it, as the server answers
   * @param functions names of those that may write, of which are asked for
   */
  public static boolean mayWrite(
      String sql, List<Map<String, String>> catalogue, List<String> functions) {
    Catalogue known = new Catalogue(Set.of());
    Set<String> called = Statements.unknownFunctions(sql, Set.of());
    List<Map<String, String>> named = functions.stream().map(name -> Map.of("name", name)).toList();
    try {
      known.ask(question -> question.contains("'call'") ? catalogue : named, called);
    } catch (SQLException error) {
      throw new IllegalStateException(error);
    }
    return known.mayWrite(sql, called) != Catalogue.Verdict.READS;
  }

  /** Returns what a text of statements may do, in the words of the vectors. */
  public static List<String> does(String sql) {
    return Statements.effects(sql, Set.of()).stream()
        .map(each -> each.name().toLowerCase(Locale.ROOT))
        .sorted()
        .toList();
  }
}
