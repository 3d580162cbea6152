package io.antipode.redis;

import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.runtime.KillSwitch;
import io.antipode.runtime.Time;
import java.util.Objects;
import java.util.regex.Pattern;

/**
 * Lineages of events that are read from the replication stream, as replicas read it. Keyspace
 * events, messages of Pub/Sub and entries of a stream name no position: they take {@link
 * io.antipode.Antipode#asOfNow}.
 */
public final class RedisEvents {
  private static final Pattern REPLID = Pattern.compile("[0-9a-f]{40}");

  private RedisEvents() {}

  /**
   * Returns what an event depends on. One of another history has an entry that barriers refuse.
   *
   * @param datastore the name that every service spells alike
   * @param offset how many bytes of the replication stream there were after the command
   * @param replid the replication id that they are counted in, as the answer to {@code PSYNC} has
   *     it
   * @throws IllegalArgumentException if one of them is none
   */
  public static Lineage lineage(String datastore, long offset, String replid) {
    if (offset <= 0 || !REPLID.matcher(Objects.requireNonNull(replid, "replid")).matches()) {
      throw new IllegalArgumentException(offset + " of " + replid + " is no replication offset");
    }
    return KillSwitch.isDisabled()
        ? Lineage.empty()
        : Lineage.of(WriteId.of(datastore, replid, offset).writtenAt(Time.hour()));
  }
}
