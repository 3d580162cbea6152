package io.antipode.mongodb;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.antipode.ConfigurationException;
import org.bson.BsonTimestamp;
import org.junit.jupiter.api.Test;

/** Lineages of events of a change stream. */
class MongoEventsTest {
  /** Nobody is asked. */
  @Test
  void aChangeWithoutItsTimeIsAnError() {
    assertThatThrownBy(() -> MongoEvents.lineage("posts", null))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> MongoEvents.lineage("posts", new BsonTimestamp(0, 7)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** The set's name is not in the event. */
  @Test
  void theNameOfTheSetNeedsAClient() {
    assertThatThrownBy(() -> MongoEvents.lineage("posts", new BsonTimestamp(2_000_000_000, 7)))
        .isInstanceOf(ConfigurationException.class);
  }
}
