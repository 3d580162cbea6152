package io.antipode.mysql;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.jdbc.Called;
import io.antipode.mysql.Session.Due;
import io.antipode.mysql.Session.End;
import io.antipode.mysql.Transaction.Snapshot;
import io.antipode.mysql.Transaction.Word;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What is known of a transaction, by calls, and by status words that say something or nothing. */
class TransactionTest {
  private static final Word ALONE = new Word(Known.YES, Known.NO);
  private static final Word INSIDE = new Word(Known.YES, Known.YES);
  private static final int DUPLICATE = 1062;
  private static final int NO_TABLE = 1146;

  private final Session session = new Session();

  @BeforeEach
  void begin() {
    session.listens(true);
    session.told(ALONE);
  }

  private Due call(String sql, Known autocommit, Word word) {
    session.starts(Statements.effects(sql), autocommit);
    return session.ended(End.DONE, 1, 0, word);
  }

  private Due call(String sql, Word word) {
    return call(sql, Known.UNKNOWN, word);
  }

  private Due refused(String sql, int number) {
    session.starts(Statements.effects(sql), Known.UNKNOWN);
    return session.ended(End.REFUSED, -1, number, Word.SILENT);
  }

  private void refuse(String sql, int number) {
    assertThat(refused(sql, number)).isEqualTo(Due.NOTHING);
  }

  private Transaction now() {
    return session.transaction();
  }

  /** A word that the driver has cleared takes nothing away from what the calls have said. */
  @Test
  void silenceChangesNothing() {
    assertThat(call("UPDATE t SET v = 1", Word.SILENT)).isEqualTo(Due.SAMPLE);
    assertThat(refused("INSERT INTO t VALUES (1)", DUPLICATE)).isEqualTo(Due.PERHAPS);
    assertThat(now().isAutonomous()).isTrue();
    assertThat(call("UPDATE t SET v = 1", Word.SILENT)).isEqualTo(Due.SAMPLE);
    refuse("INSERT INTO none VALUES (1)", NO_TABLE);
    session.lent(true, Word.SILENT);
    assertThat(call("UPDATE t SET v = 1", Word.SILENT)).isEqualTo(Due.SAMPLE);
  }

  /** Within a transaction that alone is asked for which replies do not tell; its commit is. */
  @Test
  void aTransactionBySilentReplies() {
    call("SET autocommit = 1", Known.NO, Word.SILENT);
    assertThat(call("INSERT INTO t VALUES (1)", Word.SILENT)).isEqualTo(Due.NOTHING);
    assertThat(refused("INSERT INTO t VALUES (1)", DUPLICATE)).isEqualTo(Due.PERHAPS);
    assertThat(call("INSERT INTO t VALUES (2)", Word.SILENT)).isEqualTo(Due.NOTHING);
    assertThat(now().isUncommitted()).isTrue();
    assertThat(call("COMMIT", Word.SILENT)).isEqualTo(Due.SAMPLE);
    assertThat(now().open()).isEqualTo(Known.NO);
    assertThat(now().isUnsure()).isFalse();
  }

  /** After an error in a transaction nobody knows whether it is open: a write may commit. */
  @Test
  void anErrorLeavesATransactionUnknown() {
    call("BEGIN", INSIDE);
    assertThat(refused("INSERT INTO t VALUES (1)", DUPLICATE)).isEqualTo(Due.PERHAPS);
    assertThat(now().open()).isEqualTo(Known.UNKNOWN);
    session.starts(Statements.effects("INSERT INTO t VALUES (2)"), Known.UNKNOWN);
    assertThat(session.isDoubtful()).isTrue();
    assertThat(session.ended(End.DONE, 1, 0, Word.SILENT)).isEqualTo(Due.SAMPLE);
    assertThat(call("INSERT INTO t VALUES (3)", INSIDE)).isEqualTo(Due.NOTHING);
    assertThat(now().open()).isEqualTo(Known.YES);
  }

  /** Where the word and the calls differ nobody knows, and the snapshot stays an old one. */
  @Test
  void aWordThatDiffers() {
    call("BEGIN", INSIDE);
    call("SELECT v FROM t", INSIDE);
    for (int nth = 0; nth < 2; nth++) {
      call("HELP 'select'", ALONE);
      assertThat(now().open()).isEqualTo(Known.UNKNOWN);
      assertThat(now().snapshot()).isEqualTo(Snapshot.TAKEN);
    }
    session.told(INSIDE);
    assertThat(now().snapshot()).isEqualTo(Snapshot.TAKEN);
  }

  /** The snapshot of a read whose reply has no word is there all the same. */
  @Test
  void aReadThatIsStreamed() {
    call("SET autocommit = 1", Known.NO, Word.SILENT);
    call("SELECT v FROM t", Word.SILENT);
    assertThat(now().snapshot()).isEqualTo(Snapshot.TAKEN);
    assertThat(now().open()).isEqualTo(Known.UNKNOWN);
    assertThat(now().readsCommitted("REPEATABLE-READ")).isFalse();
    call("ROLLBACK", Word.SILENT);
    assertThat(now().snapshot()).isEqualTo(Snapshot.NONE);
  }

  /** What locks what it reads takes none but through a view; nor does what is refused unread. */
  @Test
  void whatLocksTakesNoSnapshot() {
    for (String sql :
        new String[] {"SELECT a FROM t FOR UPDATE", "INSERT INTO t SELECT a FROM u"}) {
      call("BEGIN", INSIDE);
      call(sql, INSIDE);
      assertThat(now().snapshot()).isEqualTo(Snapshot.LOCKED);
      call("UPDATE t SET a = 1", INSIDE);
      assertThat(now().snapshot()).isEqualTo(Snapshot.LOCKED);
    }
    for (int number : new int[] {1054, 1792}) {
      call("BEGIN", INSIDE);
      refuse("SELECT a FROM t", number);
      assertThat(now().snapshot()).isEqualTo(Snapshot.LOCKED);
      call("SELECT a FROM t", INSIDE);
      refuse("SELECT a FROM t", number);
      assertThat(now().snapshot()).isEqualTo(Snapshot.TAKEN);
    }
  }

  /** What the driver asks for by itself may take the snapshot where none is there yet. */
  @Test
  void whatTheDriverAsksFor() {
    session.starts(Statements.effects(Called.DRIVERS), Known.UNKNOWN);
    assertThat(session.ended(End.DONE, -1, 0, Word.SILENT)).isEqualTo(Due.NOTHING);
    assertThat(now().snapshot()).isEqualTo(Snapshot.NONE);
    call("SET autocommit = 1", Known.NO, Word.SILENT);
    session.starts(Statements.effects(Called.DRIVERS), Known.UNKNOWN);
    assertThat(session.ended(End.DONE, -1, 0, Word.SILENT)).isEqualTo(Due.NOTHING);
    assertThat(now().snapshot()).isEqualTo(Snapshot.TAKEN);
  }

  /** What a pool does between two who borrow nobody sees: what was left open is unknown. */
  @Test
  void whatAPoolLends() {
    call("SET autocommit = 1", Known.NO, Word.SILENT);
    session.lent(true, Word.SILENT);
    assertThat(now().isUnsure()).isTrue();
    session.lent(true, ALONE);
    assertThat(now().isAutonomous()).isTrue();
    session.lent(true, INSIDE); // MariaDB's driver says so after an error.
    assertThat(now().open()).isEqualTo(Known.UNKNOWN);
    assertThat(call("UPDATE t SET v = 1", ALONE)).isEqualTo(Due.SAMPLE);
  }

  /** What may do anything is known by its word alone. */
  @Test
  void aCall() {
    call("CALL p()", Word.SILENT);
    assertThat(now().isUnsure()).isTrue();
    assertThat(call("UPDATE t SET v = 1", Word.SILENT)).isEqualTo(Due.SAMPLE);
    call("CALL p()", INSIDE);
    assertThat(call("UPDATE t SET v = 1", Word.SILENT)).isEqualTo(Due.NOTHING);
  }

  /** A commit that begins another transaction, as completion_type=CHAIN makes it. */
  @Test
  void aCommitThatChains() {
    call("BEGIN", INSIDE);
    call("INSERT INTO t VALUES (1)", INSIDE);
    assertThat(call("COMMIT", INSIDE)).isEqualTo(Due.SAMPLE);
    assertThat(now().open()).isEqualTo(Known.UNKNOWN);
    assertThat(call("INSERT INTO t VALUES (2)", INSIDE)).isEqualTo(Due.NOTHING);
    assertThat(now().isUncommitted()).isTrue();
  }

  /** A statement of which nobody knows whether it was made may have written. */
  @Test
  void aStatementWithoutAnAnswer() {
    call("BEGIN", INSIDE);
    session.starts(Statements.effects("INSERT INTO t VALUES (1)"), Known.UNKNOWN);
    assertThat(session.lost()).isFalse();
    assertThat(call("COMMIT", Word.SILENT)).isEqualTo(Due.SAMPLE);
  }
}
