package io.antipode.lineage;

import java.util.Comparator;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A write: what a datastore did with one committed change, named by datastore, key and version.
 *
 * <p>A version is an unsigned 64-bit number or an opaque string. The key is the name of the log
 * where the datastore has logs.
 */
public final class WriteId implements Dependency {
  /** One history: all writes of which at most one exact and one covering are kept. */
  static final Comparator<WriteId> SLOT =
      Comparator.comparing(WriteId::datastore)
          .thenComparing(WriteId::key)
          .thenComparing(write -> write.opaque, Comparator.nullsFirst(Comparator.naturalOrder()));

  static final Comparator<WriteId> ORDER = SLOT.thenComparing(WriteId::isCovering);

  /** The last hour that a text can say. */
  public static final int MAX_WRITTEN_HOUR = 60_466_175;

  private final String datastore;
  private final String key;
  private final long version;
  private final @Nullable String opaque;
  private final int writtenHour;
  private final boolean covering;

  /** Whether it came in a text. A note with the value: equality and texts ignore it. */
  private final boolean received;

  private WriteId(
      String datastore,
      String key,
      long version,
      @Nullable String opaque,
      int writtenHour,
      boolean covering,
      boolean received) {
    this.datastore = datastore;
    this.key = key;
    this.version = version;
    this.opaque = opaque;
    this.writtenHour = writtenHour;
    this.covering = covering;
    this.received = received;
  }

  /**
   * Returns an exact write without a written hour.
   *
   * @param datastore the name of the datastore; not empty
   * @param key the name of its log, or the key of the value
   * @param version the position in the log, as an unsigned number
   */
  public static WriteId of(String datastore, String key, long version) {
    Grammar.requireName(datastore);
    Grammar.requireText(key, "key");
    return new WriteId(datastore, key, version, null, 0, false, false);
  }

  /** Returns an exact write without a written hour, whose versions have no order. */
  public static WriteId ofOpaque(String datastore, String key, String version) {
    Grammar.requireName(datastore);
    Grammar.requireText(key, "key");
    Grammar.requireText(version, "version");
    return new WriteId(datastore, key, 0, version, 0, false, false);
  }

  /**
   * Returns this write as acknowledged in an hour.
   *
   * @param hour the Unix hour, or 0 where it is not known
   */
  public WriteId writtenAt(long hour) {
    if (hour < 0 || hour > MAX_WRITTEN_HOUR) {
      throw new IllegalArgumentException("the hour of a write is from 0 to " + MAX_WRITTEN_HOUR);
    }
    return new WriteId(datastore, key, version, opaque, (int) hour, covering, received);
  }

  /** Returns this version as a position that was sampled after a read. */
  public WriteId asCovering() {
    return new WriteId(datastore, key, version, opaque, writtenHour, true, received);
  }

  WriteId asReceived() {
    return new WriteId(datastore, key, version, opaque, writtenHour, covering, true);
  }

  /** Returns the name of the datastore. */
  @Override
  public String datastore() {
    return datastore;
  }

  /** Returns the name of the log, or the key of the value. */
  public String key() {
    return key;
  }

  /**
   * Returns the version as an unsigned number.
   *
   * @throws IllegalStateException if the version is opaque
   */
  public long version() {
    if (opaque != null) {
      throw new IllegalStateException("the version of " + this + " is opaque");
    }
    return version;
  }

  /** Returns the opaque version, or null where the version is a number. */
  public @Nullable String opaqueVersion() {
    return opaque;
  }

  /** Returns the Unix hour in which the write was acknowledged, or 0 where it is not known. */
  public int writtenHour() {
    return writtenHour;
  }

  /** Returns whether this is a position that was sampled after a read, not that of a write. */
  public boolean isCovering() {
    return covering;
  }

  boolean isReceived() {
    return received;
  }

  boolean isSameSlot(WriteId other) {
    return SLOT.compare(this, other) == 0;
  }

  boolean isSameVersion(WriteId other) {
    return isSameSlot(other) && version == other.version;
  }

  /** Of two writes of one slot and kind, the one that stays. */
  static WriteId later(WriteId one, WriteId other) {
    int order = Long.compareUnsigned(one.version, other.version);
    if (order == 0) {
      order = Integer.compare(one.writtenHour, other.writtenHour);
    }
    if (order == 0) {
      return one.received ? other : one;
    }
    return order > 0 ? one : other;
  }

  /** Whether an exact write of the same slot makes a covering one needless. */
  boolean supersedes(WriteId position) {
    return Long.compareUnsigned(version, position.version) >= 0;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof WriteId write
        && version == write.version
        && writtenHour == write.writtenHour
        && covering == write.covering
        && datastore.equals(write.datastore)
        && key.equals(write.key)
        && Objects.equals(opaque, write.opaque);
  }

  @Override
  public int hashCode() {
    return Objects.hash(datastore, key, version, opaque, writtenHour, covering);
  }

  @Override
  public String toString() {
    return (covering ? "up to " : "")
        + datastore
        + "["
        + key
        + "]="
        + (opaque == null ? Long.toUnsignedString(version) : "\"" + opaque + "\"");
  }
}
