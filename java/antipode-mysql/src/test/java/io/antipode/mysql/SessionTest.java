package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.mysql.Session.Due;
import io.antipode.mysql.Session.End;
import io.antipode.mysql.Transaction.Word;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the end of a call leaves to do, without a server. */
class SessionTest {
  private final Session session = new Session();

  @BeforeEach
  void begin() {
    session.told(new Word(Known.YES, Known.NO));
  }

  private Due call(String sql, boolean isInTransaction, boolean hasGtid, End end) {
    session.starts(Statements.effects(sql), Known.UNKNOWN);
    if (hasGtid && !session.isPreparing()) {
      session.committed();
    }
    Word word = end == End.DONE ? new Word(Known.YES, Known.of(isInTransaction)) : Word.SILENT;
    return session.ended(end, end == End.DONE ? 1 : -1, 0, word);
  }

  private void write() {
    assertThat(call("XA START 'x'", true, false, End.DONE)).isEqualTo(Due.NOTHING);
    assertThat(call("INSERT INTO t VALUES (1)", true, false, End.DONE)).isEqualTo(Due.NOTHING);
    assertThat(call("XA END 'x'", true, false, End.DONE)).isEqualTo(Due.NOTHING);
  }

  /** Prepared work has no position; its commit has, where the server told it. */
  @Test
  void theStepsOfTwoPhases() {
    write();
    assertThat(call("XA PREPARE 'x'", false, true, End.DONE)).isEqualTo(Due.UNCOVERED);
    assertThat(call("XA COMMIT 'x'", false, true, End.DONE)).isEqualTo(Due.NOTHING);
    assertThat(call("XA COMMIT 'y'", false, false, End.DONE)).isEqualTo(Due.UNCOVERED);
  }

  /** Whether a GTID of several statements is that of the commit nobody knows. */
  @Test
  void severalStepsInOneCall() {
    for (End end : End.values()) {
      write();
      assertThat(call("XA PREPARE 'x'; XA COMMIT 'x'", false, true, end)).isEqualTo(Due.UNCOVERED);
    }
  }
}
