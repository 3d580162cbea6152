package io.antipode.mysql;

import static io.antipode.barrier.Status.VISIBLE;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.mysql.Session.Due;
import io.antipode.mysql.Session.End;
import io.antipode.mysql.Session.Verdict;
import io.antipode.mysql.Transaction.Word;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the end of a call leaves to do, without a server. */
class SessionTest {
  private final Session session = new Session();

  @BeforeEach
  void begin() {
    session.listens(true);
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

  /** A position of several statements is not of a later one that returns rows, or fails. */
  @Test
  void aPositionBeforeTheLastOfSeveralStatements() {
    String insert = "INSERT INTO t VALUES (1); ";
    assertThat(call(insert + "SELECT a FROM t", false, true, End.DONE)).isEqualTo(Due.NOTHING);
    assertThat(call(insert + "SELECT f()", false, true, End.DONE)).isEqualTo(Due.PERHAPS);
    assertThat(call(insert + "EXECUTE s", false, true, End.DONE)).isEqualTo(Due.PERHAPS);
    assertThat(call(insert + insert, false, true, End.REFUSED)).isEqualTo(Due.PERHAPS);
  }

  private static final int DUPLICATE = 1062;
  private static final int NO_TABLE = 1146;

  private Due call(String sql, boolean isInTransaction) {
    return call(sql, isInTransaction, false, End.DONE);
  }

  /** What Lent makes of a call of a function that nobody declared. */
  private Due calling(String sql, boolean isInTransaction, long count) {
    Set<Effect> effects = Statements.effects(sql);
    effects.add(Effect.WRITES);
    session.starts(effects, Known.UNKNOWN);
    return session.ended(End.DONE, count, 0, new Word(Known.YES, Known.of(isInTransaction)));
  }

  private Due refused(String sql, int number) {
    session.starts(Statements.effects(sql), Known.UNKNOWN);
    return session.ended(End.REFUSED, -1, number, Word.SILENT);
  }

  /** A function that is not built in may write: asked after it, and at its transaction's end. */
  @Test
  void callsOfFunctions() {
    assertThat(calling("SELECT f()", false, -1)).isEqualTo(Due.PERHAPS);
    assertThat(calling("DELETE FROM t WHERE f(id)", false, 0)).isEqualTo(Due.PERHAPS);
    assertThat(calling("DELETE FROM t WHERE f(id)", false, 1)).isEqualTo(Due.SAMPLE);
    for (String end : new String[] {"COMMIT", "ROLLBACK"}) {
      call("BEGIN", true);
      assertThat(calling("SELECT f()", true, -1)).isEqualTo(Due.PERHAPS);
      assertThat(call(end, false)).isEqualTo(Due.PERHAPS);
    }
    call("BEGIN", true);
    assertThat(calling("INSERT INTO t VALUES (f())", true, 1)).isEqualTo(Due.NOTHING);
    assertThat(call("COMMIT", false)).isEqualTo(Due.SAMPLE);
  }

  /** What failed may have left rows in a table without transactions, unless it was not executed. */
  @Test
  void writesThatFail() {
    String insert = "INSERT INTO t VALUES (1), (1)";
    assertThat(refused(insert, DUPLICATE)).isEqualTo(Due.PERHAPS);
    assertThat(refused(insert, NO_TABLE)).isEqualTo(Due.NOTHING);
    call("BEGIN", true);
    assertThat(refused(insert, DUPLICATE)).isEqualTo(Due.PERHAPS);
    assertThat(call("COMMIT", false)).isEqualTo(Due.PERHAPS);
    assertThat(call("COMMIT", false)).isEqualTo(Due.NOTHING);
  }

  /** Where no reply tells what is committed, each write may have left something by now. */
  @Test
  void whatNoReplyTells() {
    session.listens(false);
    String insert = "INSERT INTO t VALUES (1)";
    call("BEGIN", true);
    assertThat(call(insert, true)).isEqualTo(Due.LASTING);
    assertThat(calling("SELECT f()", true, -1)).isEqualTo(Due.LASTING);
    assertThat(refused(insert, DUPLICATE)).isEqualTo(Due.LASTING);
    assertThat(call("COMMIT", false)).isEqualTo(Due.SAMPLE);
  }

  /** A warning of a rollback says that not all was rolled back. */
  @Test
  void rollbacks() {
    for (boolean isWarned : new boolean[] {false, true}) {
      call("BEGIN", true);
      call("INSERT INTO t VALUES (1)", true);
      session.starts(Statements.effects("ROLLBACK"), Known.UNKNOWN);
      assertThat(session.isUndoing()).isTrue();
      if (isWarned) {
        session.warned();
      }
      assertThat(session.ended(End.DONE, -1, 0, new Word(Known.YES, Known.NO)))
          .isEqualTo(isWarned ? Due.PERHAPS : Due.NOTHING);
    }
  }

  /** Without autocommit, a write to a table without transactions begins none, and stands. */
  @Test
  void aWriteThatBeginsNoTransaction() {
    session.told(new Word(Known.NO, Known.NO));
    session.starts(Statements.effects("INSERT INTO t VALUES (1)"), Known.UNKNOWN);
    assertThat(session.ended(End.DONE, 1, 0, new Word(Known.NO, Known.NO))).isEqualTo(Due.SAMPLE);
  }

  /** Several statements of which one failed may have written, whatever the error is. */
  @Test
  void severalStatementsOfWhichOneFailed() {
    String insert = "INSERT INTO t VALUES (1)";
    assertThat(refused(insert + "; " + insert, NO_TABLE)).isEqualTo(Due.SAMPLE);
    call("BEGIN", true);
    assertThat(refused(insert + "; SELECT a FROM none", NO_TABLE)).isNotEqualTo(Due.NOTHING);
    assertThat(call("COMMIT", false)).isEqualTo(Due.SAMPLE);
  }

  /** A write without a log has no position, until logging is on again. */
  @Test
  void whatIsNotLoggedIsUncovered() {
    String insert = "INSERT INTO t VALUES (1)";
    call("SET sql_log_bin = 0", false);
    assertThat(call(insert, false)).isEqualTo(Due.UNCOVERED);
    call("SET sql_log_bin = 1", false);
    assertThat(call(insert, false)).isEqualTo(Due.SAMPLE);
  }

  private static final WriteId WRITE = WriteId.of("posts", "0.1", 7);

  /** Runs a test with what the next read of a request must see that depends on a write. */
  private void demanding(Consumer<Floor> test) {
    try (MySqlShim shim = MySqlShim.builder("posts", "jdbc:mysql://127.0.0.1:1/app").register();
        ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      Barriers.barrier(BarrierOptions.timeout(Duration.ofSeconds(9)).atRead());
      test.accept(requireNonNull(Floor.current(shim)));
    }
  }

  private Verdict judge(Floor floor) {
    return session.judge(floor, Statements.effects("SELECT a FROM t"));
  }

  /** What another server showed counts no more: neither a proof, nor what was seen there. */
  @Test
  void whatAnotherServerShowedCountsNoMore() {
    demanding(
        floor -> {
          session.reaches("server-1");
          assertThat(judge(floor)).isEqualTo(Verdict.HOLD);
          session.passed(floor, Observation.of("server-1").write(WRITE, VISIBLE).build(), false);
          assertThat(judge(floor)).isEqualTo(Verdict.PASS);
          session.reaches("server-1");
          assertThat(judge(floor)).isEqualTo(Verdict.PASS);
          session.reaches("server-2");
          assertThat(judge(floor)).isEqualTo(Verdict.HOLD);
        });
  }

  /** A snapshot that may be open, by a read of a trigger, is taken for an old one. */
  @Test
  void aSnapshotThatMayBeOpenIsTakenForAnOldOne() {
    demanding(
        floor -> {
          session.reaches("server-1");
          call("BEGIN", true);
          call("INSERT INTO t VALUES (1)", true);
          session.passed(floor, Observation.of("server-1").write(WRITE, VISIBLE).build(), false);
          assertThat(judge(floor)).isEqualTo(Verdict.TRIGGERED);
          call("COMMIT", false);
          assertThat(judge(floor)).isEqualTo(Verdict.PASS);
        });
  }

  /** A snapshot is of the server that took it: another one's shows nothing that is known. */
  @Test
  void aSnapshotOfAnotherServerShowsNothing() {
    demanding(
        floor -> {
          session.reaches("server-1");
          session.passed(floor, Observation.of("server-1").write(WRITE, VISIBLE).build(), false);
          call("BEGIN", true);
          call("SELECT a FROM t", true);
          assertThat(judge(floor)).isEqualTo(Verdict.PASS);
          session.reaches("server-2");
          assertThat(judge(floor)).isEqualTo(Verdict.OLD_SNAPSHOT);
        });
  }

  /** What the server did nobody knows, where its driver failed. */
  @Test
  void aWriteWhoseDriverFailedMayHaveBeenMade() {
    assertThat(call("INSERT INTO t VALUES (1)", false, false, End.FAILED)).isEqualTo(Due.SAMPLE);
  }

  /** The session that follows may have a snapshot open: what it shows nobody knows. */
  @Test
  void aReadAfterALostConnectionIsOfAnOldSnapshot() {
    demanding(
        floor -> {
          session.reaches("server-1");
          session.passed(floor, Observation.of("server-1").write(WRITE, VISIBLE).build(), false);
          session.starts(Statements.effects("SET @a = 1"), Known.UNKNOWN);
          assertThat(session.lost()).isFalse();
          assertThat(judge(floor)).isEqualTo(Verdict.OLD_SNAPSHOT);
        });
  }

  /** What nobody saw and a pool gets back open is committed by whoever borrows it next. */
  @Test
  void whatNobodySawIsCommittedByTheNext() {
    session.listens(false);
    session.unseen(new Word(Known.NO, Known.YES));
    assertThat(session.transaction().isUncommitted()).isTrue();
    session.lent(true, new Word(Known.UNKNOWN, Known.YES));
    assertThat(call("BEGIN", true, false, End.DONE)).isEqualTo(Due.PERHAPS);
    session.unseen(Word.SILENT);
    assertThat(session.transaction().isUncommitted()).isTrue();
    session.unseen(new Word(Known.YES, Known.NO));
    assertThat(session.transaction().isUncommitted()).isFalse();
    assertThat(call("BEGIN", true, false, End.DONE)).isEqualTo(Due.NOTHING);
  }
}
