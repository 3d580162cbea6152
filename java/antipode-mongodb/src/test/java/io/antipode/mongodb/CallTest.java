package io.antipode.mongodb;

import static org.assertj.core.api.Assertions.assertThat;

import com.mongodb.MongoClientSettings;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoSocketReadException;
import com.mongodb.ServerAddress;
import com.mongodb.connection.ClusterId;
import com.mongodb.connection.ConnectionDescription;
import com.mongodb.connection.ServerId;
import com.mongodb.event.CommandFailedEvent;
import com.mongodb.event.CommandStartedEvent;
import com.mongodb.event.CommandSucceededEvent;
import io.antipode.Antipode;
import io.antipode.barrier.Places;
import io.antipode.lineage.Incomplete;
import io.antipode.request.ScopeBlock;
import java.util.Set;
import java.util.function.Consumer;
import org.bson.BsonDocument;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * What calls of an application come to, by events that are made here: a real server ends whole
 * commands with most of these errors, and repeats nothing when it is told to. No test connects:
 * replies tell that no document fitted, so that nothing needs a name.
 */
class CallTest {
  private static final ServerAddress SERVER = new ServerAddress("localhost", 1);
  private static final Set<Incomplete> IN_DOUBT = Set.of(new Incomplete("posts", "in_doubt"));
  private static final String NOTHING = "{ok: 1, n: 0}";

  private final MongoShim shim =
      MongoShim.builder("posts", "mongodb://localhost:1", "app", "posts").register();
  private final Instrumented client =
      new Instrumented(
          shim, new Members(MongoClientSettings.builder().build()), Places.of(() -> 0));
  private final ConnectionDescription connection =
      new ConnectionDescription(new ServerId(new ClusterId(), SERVER));

  @AfterEach
  void close() {
    shim.close();
  }

  private void sent(String command) {
    BsonDocument body = BsonDocument.parse(command);
    client.commandStarted(
        new CommandStartedEvent(null, 1, 1, connection, "app", body.getFirstKey(), body));
  }

  private void answered(String name, String reply) {
    client.commandSucceeded(
        new CommandSucceededEvent(
            null, 1, 1, connection, "app", name, BsonDocument.parse(reply), 1));
  }

  private void failed(String name, Throwable error) {
    client.commandFailed(new CommandFailedEvent(null, 1, 1, connection, "app", name, 1, error));
  }

  private static Throwable lost() {
    return new MongoSocketReadException("reset", SERVER);
  }

  private static Throwable refused(int code, String more) {
    return new MongoCommandException(
        BsonDocument.parse("{ok: 0, code: " + code + more + "}"), SERVER);
  }

  /** Returns an insert; with the same number in the same session it is an attempt of the same. */
  private static String insert(String number, String session) {
    return "{insert: 'c', lsid: {id: '" + session + "'}" + number + "}";
  }

  private static String insert(int number) {
    return insert(", txnNumber: " + number, "s");
  }

  /** Returns the marks of a request that did this in one call of the application. */
  private Set<Incomplete> marks(Consumer<CallTest> happens) {
    try (ScopeBlock request = Antipode.scope()) {
      Call call = new Call(client);
      Call outer = call.enter();
      try {
        happens.accept(this);
      } finally {
        Call.leave(outer);
      }
      call.settle();
      return Set.copyOf(Antipode.current().incomplete());
    }
  }

  private Set<Incomplete> marks(Throwable end, String first, String second) {
    return marks(
        test -> {
          test.sent(first);
          test.failed("insert", end);
          test.sent(second);
          test.answered("insert", NOTHING);
        });
  }

  /** A write that is repeated by its number was made once; the answer to another says nothing. */
  @Test
  void onlyAnAttemptOfTheSameNumberEndsDoubt() {
    for (Throwable end : new Throwable[] {lost(), refused(91, "")}) {
      assertThat(marks(end, insert(1), insert(1))).isEmpty();
      assertThat(marks(end, insert(1), insert(2))).isEqualTo(IN_DOUBT);
      assertThat(marks(end, insert(1), insert(", txnNumber: 1", "t"))).isEqualTo(IN_DOUBT);
      assertThat(marks(end, insert("", "s"), insert("", "s"))).isEqualTo(IN_DOUBT);
      assertThat(marks(end, insert("", "s"), insert(1))).isEqualTo(IN_DOUBT);
    }
  }

  /** Of two operations in doubt each needs an answer to itself. */
  @Test
  void doubtIsSettledOneByOne() {
    assertThat(marks(test -> test.loseTwoAndAnswer(1))).isEqualTo(IN_DOUBT);
    assertThat(marks(test -> test.loseTwoAndAnswer(2))).isEqualTo(IN_DOUBT);
    assertThat(marks(test -> test.loseTwoAndAnswer(1, 2))).isEmpty();
  }

  private void loseTwoAndAnswer(int... numbers) {
    for (int number = 1; number <= 2; number++) {
      sent(insert(number));
      failed("insert", lost());
    }
    for (int number : numbers) {
      sent(insert(number));
      answered("insert", NOTHING);
    }
  }

  /** A server that is no primary any more says nothing of what it did before. */
  @Test
  void anAttemptThatWasRefusedLeavesTheDoubt() {
    Consumer<CallTest> refusal =
        test -> {
          test.sent(insert(1));
          test.failed("insert", lost());
          test.sent(insert(1));
          test.failed("insert", refused(10_107, ""));
        };
    assertThat(marks(refusal)).isEqualTo(IN_DOUBT);
  }

  /** A reply that is no error has those of its documents, and one may say an interruption. */
  @Test
  void theErrorOfOneDocumentIsLookedInto() {
    assertThat(marksOfErrorAt(11_000)).isEmpty();
    assertThat(marksOfErrorAt(11_600)).isEqualTo(IN_DOUBT);
    assertThat(marksOfErrorAt(237)).isEqualTo(IN_DOUBT);
  }

  private Set<Incomplete> marksOfErrorAt(int code) {
    String errors = "[{index: 0, code: 11000}, {index: 1, code: " + code + "}]";
    return marks(
        test -> {
          test.sent(insert(1));
          test.answered("insert", "{ok: 1, n: 0, writeErrors: " + errors + "}");
        });
  }

  /** The second attempt of a commit has the first one's number; with the label nothing was done. */
  @Test
  void aCommitIsInDoubtUnlessTheServerVouches() {
    assertThat(marksOfCommit("TransientTransactionError")).isEmpty();
    assertThat(marksOfCommit("UnknownTransactionCommitResult")).isEqualTo(IN_DOUBT);
  }

  private Set<Incomplete> marksOfCommit(String label) {
    String transaction = "lsid: {id: 's'}, txnNumber: 3, autocommit: false";
    String commit = "{commitTransaction: 1, writeConcern: {w: 'majority'}, " + transaction + "}";
    return marks(
        test -> {
          test.sent("{insert: 'c', startTransaction: true, " + transaction + "}");
          test.answered("insert", NOTHING);
          test.sent(commit);
          test.failed("commitTransaction", lost());
          test.sent(commit);
          test.failed("commitTransaction", refused(251, ", errorLabels: ['" + label + "']"));
        });
  }
}
