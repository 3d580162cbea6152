package io.antipode.postgresql;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.barrier.BarrierOptions;
import io.antipode.barrier.Barriers;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.postgresql.Link.State;
import io.antipode.postgresql.Session.Due;
import io.antipode.postgresql.Session.End;
import io.antipode.postgresql.Session.Verdict;
import io.antipode.request.ScopeBlock;
import java.time.Duration;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What is asked about after a call. No server is asked. */
class SessionTest {
  private final Session session = new Session();

  private void starts(String sql, State state) {
    session.starts(Statements.effects(sql, Set.of()), state);
  }

  private Due sent(String sql, State before, State after, End end, long count) {
    starts(sql, before);
    session.sent();
    return session.ended(after, end, count, null);
  }

  private Due alone(String sql, End end) {
    return sent(sql, State.IDLE, State.IDLE, end, -1);
  }

  private void begins(String sql) {
    assertThat(sent(sql, State.IDLE, State.OPEN, End.DONE, 1)).isEqualTo(Due.NOTHING);
  }

  @Test
  void whatCommitsAlone() {
    assertThat(alone("INSERT INTO t VALUES (1)", End.DONE)).isEqualTo(Due.EXACT);
    assertThat(sent("UPDATE t SET a = 1", State.IDLE, State.IDLE, End.DONE, 0))
        .isEqualTo(Due.COVERING);
    assertThat(alone("SELECT f()", End.DONE)).isEqualTo(Due.NAMED);
    assertThat(alone("SELECT a FROM t", End.DONE)).isEqualTo(Due.NAMED);
    assertThat(alone("SELECT a FROM t; SELECT f()", End.DONE)).isEqualTo(Due.NAMED);
    assertThat(alone("SHOW ALL", End.DONE)).isEqualTo(Due.NOTHING);
  }

  /** The server undoes a statement that it refuses; not what a procedure committed before. */
  @Test
  void whatFails() {
    assertThat(alone("INSERT INTO t VALUES (1)", End.REFUSED)).isEqualTo(Due.NOTHING);
    assertThat(alone("CALL p()", End.REFUSED)).isEqualTo(Due.INSIDE);
    assertThat(alone("INSERT INTO t VALUES (1); SELECT a FROM t", End.REFUSED))
        .isEqualTo(Due.INSIDE);
    String again = "ROLLBACK; INSERT INTO t VALUES (1)";
    assertThat(sent(again, State.FAILED, State.IDLE, End.DONE, 1)).isEqualTo(Due.INSIDE);
    assertThat(alone("INSERT INTO t VALUES (1)", End.FAILED)).isEqualTo(Due.COVERING);
  }

  @Test
  void aTransaction() {
    begins("INSERT INTO t VALUES (1)");
    assertThat(session.isUncommitted(State.OPEN)).isTrue();
    assertThat(sent("ROLLBACK", State.OPEN, State.IDLE, End.DONE, -1)).isEqualTo(Due.NOTHING);
    assertThat(session.isUncommitted(State.IDLE)).isFalse();
    begins("SELECT a FROM t");
    assertThat(sent("COMMIT", State.OPEN, State.IDLE, End.DONE, -1)).isEqualTo(Due.NAMED);
    begins("BEGIN");
    assertThat(sent("COMMIT", State.OPEN, State.IDLE, End.DONE, -1)).isEqualTo(Due.NOTHING);
  }

  /** Whether it has an id is the server's word. */
  @Test
  void aTransactionThatWasAsked() {
    begins("SELECT a FROM t");
    starts("COMMIT", State.OPEN);
    assertThat(session.isCommitting()).isTrue();
    assertThat(session.ended(State.IDLE, End.DONE, -1, true)).isEqualTo(Due.EXACT);
  }

  /** Only there may another connection wait for the first read. */
  @Test
  void aTransactionThatHasSentNothingThatReads() {
    assertThat(session.isUnread()).isFalse(); // Nobody knows what came before.
    begins("BEGIN");
    assertThat(sent("SET LOCAL work_mem = '4MB'", State.OPEN, State.OPEN, End.DONE, -1))
        .isEqualTo(Due.NOTHING);
    assertThat(session.isUnread()).isTrue();
    assertThat(sent("SELECT f()", State.OPEN, State.OPEN, End.DONE, -1)).isEqualTo(Due.NOTHING);
    assertThat(session.isUnread()).isFalse();
  }

  @Test
  void whatOthersCommitIsInDoubt() {
    begins("INSERT INTO t VALUES (1)");
    assertThat(sent("PREPARE TRANSACTION 'x'", State.OPEN, State.IDLE, End.DONE, -1))
        .isEqualTo(Due.IN_DOUBT);
  }

  /** The server answers a commit of a failed transaction with a rollback. */
  @Test
  void aTransactionThatHadFailedWroteNothing() {
    assertThat(sent("INSERT INTO t VALUES (1)", State.IDLE, State.FAILED, End.REFUSED, -1))
        .isEqualTo(Due.NOTHING);
    assertThat(sent("COMMIT", State.FAILED, State.IDLE, End.DONE, -1)).isEqualTo(Due.NOTHING);
  }

  private boolean isLostInDoubt(String sql, State before, @Nullable Boolean wrote) {
    starts(sql, before);
    return session.lost(wrote);
  }

  /** Only where a commit may have been on its way. */
  @Test
  void aLostConnection() {
    assertThat(isLostInDoubt("INSERT INTO t VALUES (1)", State.IDLE, null)).isTrue();
    assertThat(isLostInDoubt("SELECT a FROM t", State.IDLE, null)).isFalse();
    begins("INSERT INTO t VALUES (1)");
    assertThat(isLostInDoubt("UPDATE t SET a = 1", State.OPEN, null)).isFalse();
    begins("INSERT INTO t VALUES (1)");
    assertThat(isLostInDoubt("COMMIT", State.OPEN, null)).isTrue();
    begins("INSERT INTO t VALUES (1)");
    assertThat(isLostInDoubt("COMMIT", State.OPEN, false)).isFalse();
  }

  private Due leavesOpen(String sql, State before) {
    return sent(sql, before, State.OPEN, End.DONE, -1);
  }

  /** What it committed before is asked for once the transaction is over that it leaves open. */
  @Test
  void aTextThatCommitsAndLeavesATransactionOpen() {
    assertThat(leavesOpen("INSERT INTO t VALUES (1); COMMIT; BEGIN", State.IDLE))
        .isEqualTo(Due.LEFT_OPEN);
    assertThat(leavesOpen("SELECT log('x'); COMMIT; BEGIN", State.IDLE)).isEqualTo(Due.LEFT_OPEN);
    assertThat(leavesOpen("BEGIN; INSERT INTO t VALUES (1)", State.IDLE)).isEqualTo(Due.NOTHING);
    begins("INSERT INTO t VALUES (1)");
    assertThat(leavesOpen("COMMIT AND CHAIN; SELECT a FROM t", State.OPEN))
        .isEqualTo(Due.LEFT_OPEN);
    assertThat(leavesOpen("PREPARE TRANSACTION 'x'; BEGIN", State.OPEN)).isEqualTo(Due.IN_DOUBT);
    assertThat(leavesOpen("SET work_mem = '4MB'; COMMIT; BEGIN", State.IDLE))
        .isEqualTo(Due.NOTHING);
  }

  /** Nothing was committed here: by a foreign table, or by what was called, it may be elsewhere. */
  @Test
  void aTransactionWithoutAnId() {
    begins("UPDATE t SET a = 1");
    starts("COMMIT", State.OPEN);
    assertThat(session.ended(State.IDLE, End.DONE, -1, false)).isEqualTo(Due.CHANGED);
    begins("SELECT f()");
    starts("COMMIT", State.OPEN);
    assertThat(session.ended(State.IDLE, End.DONE, -1, false)).isEqualTo(Due.CALLED);
    begins("SELECT f()");
    assertThat(sent("ROLLBACK", State.OPEN, State.IDLE, End.DONE, -1)).isEqualTo(Due.CALLED);
    assertThat(alone("SELECT f()", End.REFUSED)).isEqualTo(Due.CALLED);
    begins("SELECT a FROM t");
    starts("COMMIT", State.OPEN);
    assertThat(session.ended(State.IDLE, End.DONE, -1, false)).isEqualTo(Due.NOTHING);
  }

  /** What follows a rollback in one text commits on its own. */
  @Test
  void aConnectionThatIsLostInSeveralStatements() {
    begins("SELECT a FROM t");
    assertThat(isLostInDoubt("ROLLBACK; INSERT INTO t VALUES (1)", State.OPEN, null)).isTrue();
    assertThat(isLostInDoubt("BEGIN; SELECT f(); COMMIT", State.IDLE, null)).isTrue();
    assertThat(isLostInDoubt("BEGIN; SELECT f()", State.IDLE, null)).isFalse();
  }

  private static final WriteId WRITE = WriteId.of("posts", "log", 7);
  private static final BarrierOptions AT_READ =
      BarrierOptions.timeout(Duration.ofSeconds(9)).atRead();

  /** Runs a test in a request that depends on a write. */
  private static void demanding(Consumer<Supplier<Floor>> test) {
    String url = "jdbc:postgresql://127.0.0.1:1/app";
    try (PostgreSqlShim shim = PostgreSqlShim.builder("posts", url).register();
        ScopeBlock request = Antipode.scope(Lineage.of(WRITE))) {
      test.accept(
          () -> {
            Barriers.barrier(AT_READ);
            return requireNonNull(Floor.current(shim));
          });
    }
  }

  private Verdict judges(String sql, State state, Floor floor) {
    starts(sql, state);
    return session.judge(floor);
  }

  private void declares(String name, Floor met) {
    starts("DECLARE " + name + " CURSOR FOR SELECT a FROM t", State.OPEN);
    session.passed(met, null);
    Due due = session.ended(State.OPEN, End.DONE, -1, null);
    assertThat(due).isEqualTo(Due.NOTHING);
  }

  /** Which of them a statement reads from nobody knows. */
  @Test
  void ofSeveralCursorsTheOldestSaysWhatIsShown() {
    demanding(
        floors -> {
          Floor first = floors.get();
          Antipode.append(WriteId.of("posts", "log", 8));
          Floor later = floors.get();
          begins("BEGIN");
          declares("one", first);
          declares("two", later);
          assertThat(judges("FETCH ALL FROM two", State.OPEN, first)).isEqualTo(Verdict.PASS);
          assertThat(judges("FETCH ALL FROM two", State.OPEN, later)).isEqualTo(Verdict.STALE);
        });
  }

  /** However new the server is: the snapshot is another transaction's. */
  @Test
  void aReadFromASnapshotThatIsImportedIsStale() {
    demanding(
        floors -> {
          Floor floor = floors.get();
          session.looked("one");
          session.passed(floor, Observation.of("one").write(WRITE, Status.VISIBLE).build());
          assertThat(judges("SELECT a FROM t", State.IDLE, floor)).isEqualTo(Verdict.PASS);
          String imports =
              "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '1'; SELECT a FROM t";
          assertThat(judges(imports, State.IDLE, floor)).isEqualTo(Verdict.STALE);
        });
  }

  private Due committed(boolean wrote, String... texts) {
    session.temporary().begins();
    begins("BEGIN");
    for (String sql : texts) {
      session.temporary().writes(sql, Statements.effects(sql, Set.of()));
      sent(sql, State.OPEN, State.OPEN, End.DONE, 1);
    }
    starts("COMMIT", State.OPEN);
    session.sent();
    return session.ended(State.IDLE, End.DONE, -1, wrote);
  }

  /** Without an id nothing shows what a trigger of a temporary table sent to another server. */
  @Test
  void whatChangesTemporaryTablesAlone() {
    String made = "create local temp table Own (a int)";
    String written = "INSERT INTO own VALUES (1)";
    assertThat(committed(false, written)).isEqualTo(Due.CHANGED);
    assertThat(committed(false, made, written)).isEqualTo(Due.CALLED);
    assertThat(committed(true, written)).isEqualTo(Due.EXACT);
    assertThat(session.temporary().isAlone()).isTrue();
    assertThat(committed(false, written, "INSERT INTO t VALUES (1)")).isEqualTo(Due.CHANGED);
    assertThat(session.temporary().isAlone()).isFalse();
    assertThat(committed(false, written)).isEqualTo(Due.CALLED);
    assertThat(committed(false, written + "; " + written)).isEqualTo(Due.CHANGED);
  }

  /** A connection that is lent may have a transaction open that changed anything. */
  @Test
  void whatMayHaveChangedBefore() {
    String made = "CREATE TEMPORARY TABLE own (a int)";
    session.temporary().writes(made, Statements.effects(made, Set.of()));
    assertThat(session.temporary().isAlone()).isFalse();
  }
}
