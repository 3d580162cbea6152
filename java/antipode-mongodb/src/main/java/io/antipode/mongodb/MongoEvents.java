package io.antipode.mongodb;

import io.antipode.barrier.AsOfNow;
import io.antipode.barrier.Shims;
import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.time.Duration;
import org.bson.BsonTimestamp;
import org.jspecify.annotations.Nullable;

/**
 * Lineages of events of a change stream: each is the write that it reports. A change stream reports
 * what a majority has, so that its time alone is a position, whatever the term.
 */
public final class MongoEvents {
  private static final Duration TIMEOUT = Duration.ofSeconds(5);

  private MongoEvents() {}

  /**
   * Returns what an event depends on. The name of the replica set is asked of the primary, unless a
   * client here knows it. An event of before the set was initiated has an entry that barriers
   * refuse.
   *
   * @param datastore the name that every service spells alike
   * @param clusterTime of the event, {@code ChangeStreamDocument.getClusterTime()}
   * @return the write; incomplete ({@code unsampled}) where the primary does not answer
   * @throws IllegalArgumentException if it has none
   * @throws io.antipode.ConfigurationException if no client here reaches the primary
   */
  public static Lineage lineage(String datastore, @Nullable BsonTimestamp clusterTime) {
    if (clusterTime == null || clusterTime.getTime() == 0) {
      throw new IllegalArgumentException("the event of a change stream has its clusterTime");
    }
    if (KillSwitch.isDisabled()) {
      return Lineage.empty();
    }
    String name = setName(datastore);
    if (name.isEmpty() && !AsOfNow.positions(datastore, TIMEOUT).isEmpty()) {
      name = setName(datastore);
    }
    return name.isEmpty()
        ? Lineage.empty().marked(new Incomplete(datastore, "unsampled"))
        : Lineage.of(WriteId.of(datastore, name, clusterTime.getValue()).writtenAt(Time.hour()));
  }

  /** Returns the set's name as a client here learnt it; empty where none did. */
  private static String setName(String datastore) {
    return Shims.of(datastore).stream()
        .filter(MongoShim.class::isInstance)
        .map(shim -> ((MongoShim) shim).setName())
        .filter(name -> !name.isEmpty())
        .findFirst()
        .orElse("");
  }
}
