package io.antipode.redis;

import io.antipode.redis.Commands.Kind;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What commands did, as their replies say. */
final class Effects {
  private Effects() {}

  /**
   * Returns what was done: a write, what may be one, or neither.
   *
   * @param error the reply; null where it is none
   */
  static Kind of(Kind asked, @Nullable String error) {
    if (asked == Kind.WRITE) {
      return error == null ? Kind.WRITE : Kind.NEITHER;
    }
    boolean ran = asked == Kind.UNKNOWN && (error == null || !error.startsWith("NOSCRIPT"));
    return ran ? Kind.UNKNOWN : Kind.NEITHER;
  }

  /**
   * Returns the most that was done by the commands of a transaction.
   *
   * @param answers one for each, of which exceptions are errors; null where it was aborted
   */
  static Kind ofAll(List<Kind> asked, @Nullable List<?> answers) {
    if (answers == null) {
      return Kind.NEITHER;
    }
    if (asked.size() != answers.size()) { // Which answer is whose cannot be known.
      return Commands.mayWrite(asked) ? Kind.UNKNOWN : Kind.NEITHER;
    }
    Kind most = Kind.NEITHER;
    for (int nth = 0; nth < answers.size(); nth++) {
      String error =
          answers.get(nth) instanceof Exception failed ? String.valueOf(failed.getMessage()) : null;
      Kind each = of(asked.get(nth), error);
      if (each == Kind.WRITE || most == Kind.NEITHER) {
        most = each;
      }
    }
    return most;
  }
}
