package io.antipode.postgresql;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.jdbc.Texts;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What reading the text of a statement costs; the vectors hold what it means. */
class StatementsTest {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  /** What opens, closes, hides, calls or divides, again and again. */
  private static final List<String> UNITS =
      List.of(
          "/*",
          "/* */ ",
          "-- \n",
          "$a$",
          "$a",
          "$$",
          " $a$b",
          "('b', 2), ",
          "'a\\b',",
          "'",
          "\"",
          "e'",
          "'' ",
          "a.",
          "f(1, ",
          "AS a (",
          "(;",
          "/*!",
          "`",
          "#",
          "next ",
          "orders ");

  private static void read(String sql) {
    Set<Effect> found = Statements.effects(sql, Set.of());
    Set<String> names = Statements.unknownFunctions(sql, Set.of());
    Mentions mentioned = Mentions.of(sql, Set.of("orders"));
    assertThat(found.size() + names.size() + mentioned.all().size()).isPositive();
  }

  /** Returns the least processor time of some runs, in nanoseconds. */
  private static long spent(String sql) {
    long least = Long.MAX_VALUE;
    for (int run = 0; run < 5; run++) {
      long started = THREADS.getCurrentThreadCpuTime();
      read(sql);
      least = Math.min(least, THREADS.getCurrentThreadCpuTime() - started);
    }
    return least;
  }

  private static void assertLinear(String name, String shorter, String longer) {
    long most = 8 * spent(shorter) + 2_000_000;
    assertThat(spent(longer)).as(name).isLessThan(most);
  }

  /** A text that is four times as long takes less than eight times the time: not sixteen. */
  @Test
  void longTextsTakeLinearTime() {
    for (String unit : UNITS) {
      String text = "SELECT f() " + unit.repeat(24_000 / unit.length());
      assertLinear(unit, text.substring(0, 6_000), text.substring(0, 24_000));
    }
  }

  /** Each level was searched for anew. */
  @Test
  void commentsInCommentsTakeLinearTime() {
    assertLinear(
        "comments",
        "/*".repeat(2_000) + "*/".repeat(2_000) + "TABLE t",
        "/*".repeat(8_000) + "*/".repeat(8_000) + "TABLE t");
    String nested = "/*".repeat(3_000) + " ' " + "*/".repeat(3_000) + " TABLE t";
    assertThat(Statements.effects(nested, Set.of())).containsExactly(Effect.READS);
  }

  /** What lies beyond the bound is never taken for nothing. */
  @Test
  void whatIsTooLongDoesAnything() {
    for (String begin : List.of("SELECT '", "INSERT INTO t VALUES (1, '", "BEGIN; SELECT '")) {
      String sql = begin + "x".repeat(Texts.LONGEST) + "'; COMMIT";
      assertThat(Statements.effects(sql, Set.of()))
          .contains(Effect.READS, Effect.WRITES, Effect.COMMITS_INSIDE, Effect.SEVERAL);
    }
  }
}
