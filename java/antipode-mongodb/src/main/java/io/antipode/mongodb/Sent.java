package io.antipode.mongodb;

import com.mongodb.connection.ConnectionDescription;
import com.mongodb.event.CommandStartedEvent;
import org.bson.BsonDocument;
import org.bson.BsonNumber;
import org.bson.BsonString;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/**
 * What is remembered of a command that was sent; the command itself is gone with its event.
 *
 * @param means what it does to the lineage: a write in a transaction does nothing yet
 * @param concern {@code w} of its write concern, as text; null where it states none
 * @param level of its read concern; null where it states none
 * @param commits the session whose transaction it commits; null for none
 * @param termBefore a term in which its server was primary before; null where nobody asked
 * @param operation the same in all attempts that count as one; null for one alone
 */
record Sent(
    String name,
    Commands.Kind means,
    @Nullable String concern,
    @Nullable String level,
    @Nullable SessionState commits,
    @Nullable Long termBefore,
    @Nullable Operation operation,
    ConnectionDescription connection) {
  /** What all attempts of a write that count as one have in common: retries have its number. */
  record Operation(@Nullable BsonValue session, long number) {
    static @Nullable Operation of(BsonDocument command) {
      Long number = Bson.integerAt(command, "txnNumber");
      return number == null ? null : new Operation(Bson.at(command, "lsid", "id"), number);
    }
  }

  static Sent of(
      CommandStartedEvent event,
      Commands.Kind means,
      @Nullable SessionState commits,
      @Nullable Long termBefore) {
    BsonDocument command = event.getCommand();
    BsonValue level = Bson.at(command, "readConcern", "level");
    return new Sent(
        event.getCommandName(),
        means,
        concern(command),
        level instanceof BsonString named ? named.getValue() : null,
        commits,
        termBefore,
        Operation.of(command),
        event.getConnectionDescription());
  }

  static @Nullable String concern(BsonDocument command) {
    BsonValue concern = Bson.at(command, "writeConcern", "w");
    if (concern instanceof BsonNumber number) {
      return String.valueOf(number.intValue());
    }
    return concern instanceof BsonString named ? named.getValue() : null;
  }

  boolean isWrite() {
    return means == Commands.Kind.WRITE || means == Commands.Kind.UNKNOWN;
  }

  boolean isMajority() {
    return "majority".equals(concern);
  }

  /** Returns whether its server does not answer. */
  boolean isUnacknowledged() {
    return "0".equals(concern);
  }
}
