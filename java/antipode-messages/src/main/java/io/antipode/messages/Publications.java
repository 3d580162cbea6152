package io.antipode.messages;

import io.antipode.lineage.WriteId;
import io.antipode.runtime.Time;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The names of publications. A publisher is one opening of one channel and one exchange, for at
 * most a minute: who begins to listen cannot judge those that were created before. Without I/O;
 * thread-safe.
 */
public final class Publications {
  /** How long a publisher lives. */
  static final Duration ROLL = Duration.ofSeconds(60);

  /** Publishers that a channel keeps: names of reply queues are no two alike. */
  private static final int MOST_OPEN = 1_024;

  private static final int BIRTH_SHIFT = 16;
  private static final long VERSION_7 = 0x7000L;
  private static final long RANDOM_HIGH = 0xfffL;
  private static final long VARIANT = 0x8000_0000_0000_0000L;
  private static final long RANDOM_LOW = 0x3fff_ffff_ffff_ffffL;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final String datastore;
  private final boolean byRoutingKey;
  private final LongSupplier nanoTime;
  private final Map<Lane, Publisher> open = new LinkedHashMap<>();

  private record Lane(String exchange, String routingKey) {}

  private static final class Publisher {
    final String key = newPublisher(Time.now().toEpochMilli());
    final long since;
    long last;

    Publisher(long since) {
      this.since = since;
    }
  }

  /**
   * Names nothing yet.
   *
   * @param byRoutingKey whether readers listen to single routing keys, not to whole exchanges
   */
  public Publications(String datastore, boolean byRoutingKey) {
    this(datastore, byRoutingKey, System::nanoTime);
  }

  /** Names nothing yet; publishers age by a clock of tests. */
  public Publications(String datastore, boolean byRoutingKey, LongSupplier nanoTime) {
    this.datastore = datastore;
    this.byRoutingKey = byRoutingKey;
    this.nanoTime = nanoTime;
  }

  /** Returns a random UUID of version 7, which states its creation. */
  static String newPublisher(long unixMs) {
    long high = unixMs << BIRTH_SHIFT | VERSION_7 | (RANDOM.nextLong() & RANDOM_HIGH);
    return new UUID(high, VARIANT | (RANDOM.nextLong() & RANDOM_LOW)).toString();
  }

  /** Returns when a publisher began, in Unix milliseconds of its clock; null if unstated. */
  static @Nullable Long bornMs(String publisher) {
    UUID id;
    try {
      id = UUID.fromString(publisher);
    } catch (IllegalArgumentException error) {
      return null;
    }
    return id.version() == 7 ? id.getMostSignificantBits() >>> BIRTH_SHIFT : null;
  }

  /**
   * Returns the name of the next publication, which must be published or voided. What goes to the
   * default exchange is numbered for each queue.
   */
  public synchronized WriteId next(String exchange, String routingKey) {
    Lane lane = new Lane(exchange, byRoutingKey || exchange.isEmpty() ? routingKey : "");
    long now = nanoTime.getAsLong();
    Publisher held = open.get(lane);
    if (held == null || now - held.since > ROLL.toNanos()) {
      open.remove(lane);
      held = new Publisher(now);
      open.put(lane, held);
      if (open.size() > MOST_OPEN) {
        open.remove(open.keySet().iterator().next());
      }
    }
    held.last++;
    return WriteId.of(datastore, held.key, held.last).writtenAt(Time.hour());
  }

  /** Ends the publisher of what may never be routed: what follows is another's. */
  public synchronized void end(WriteId write) {
    for (Iterator<Publisher> all = open.values().iterator(); all.hasNext(); ) {
      if (all.next().key.equals(write.key())) {
        all.remove();
        return;
      }
    }
  }

  /** Ends all publishers: the channel was closed. */
  public synchronized void endAll() {
    open.clear();
  }
}
