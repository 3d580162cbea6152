package io.antipode.lineage;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The set of writes that a request has made or seen, with marks for whatever is known to be
 * missing.
 *
 * <p>A lineage is a value: it never changes, and may be shared between threads. Lineages are equal
 * exactly if their texts are.
 */
public final class Lineage {
  private static final Lineage EMPTY = new Lineage(List.of(), List.of(), List.of(), 0, List.of());

  /** In normal form: in each slot at most one exact write, and then one covering position. */
  private final List<WriteId> writes;

  private final List<Incomplete> incomplete;
  private final List<Promise> promises;
  private final long openBranches;
  private final List<String> unknown;

  private Lineage(
      List<WriteId> writes,
      List<Incomplete> incomplete,
      List<Promise> promises,
      long openBranches,
      List<String> unknown) {
    this.writes = writes;
    this.incomplete = incomplete;
    this.promises = promises;
    this.openBranches = openBranches;
    this.unknown = unknown;
  }

  /** Returns the lineage that holds nothing. */
  public static Lineage empty() {
    return EMPTY;
  }

  /** Returns a lineage of these writes. */
  public static Lineage of(WriteId... writes) {
    Builder builder = builder();
    for (WriteId write : writes) {
      builder.write(write);
    }
    return builder.build();
  }

  /** Returns a builder of a lineage from its parts. */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * Returns the lineage of a text. It says what the text says: what comes from elsewhere is to be
   * {@link #received}.
   *
   * @throws LineageDecodeException if the text is no lineage
   */
  public static Lineage deserialize(String text) {
    return new Decoder(Objects.requireNonNull(text, "text")).decode();
  }

  /** Returns the writes, each once, in no order that means anything. */
  public List<WriteId> writes() {
    return writes;
  }

  /** Returns what is known to be missing. */
  public List<Incomplete> incomplete() {
    return incomplete;
  }

  /** Returns the promises. */
  public List<Promise> promises() {
    return promises;
  }

  /** Returns how many branches of the request were open, as an unsigned number. */
  public long openBranches() {
    return openBranches;
  }

  /** Returns the items of kinds that this version gives no meaning, as they came. */
  public List<String> unknown() {
    return unknown;
  }

  /** Returns whether this lineage holds nothing. */
  public boolean isEmpty() {
    return equals(EMPTY);
  }

  /** Returns this lineage with a write. */
  public Lineage append(WriteId write) {
    return merge(of(write));
  }

  /** Returns this lineage with a mark. */
  public Lineage marked(Incomplete mark) {
    return merge(builder().incomplete(mark).build());
  }

  /** Returns this lineage with a promise. */
  public Lineage append(Promise promise) {
    return merge(builder().promise(promise).build());
  }

  /** Returns all that this lineage and the others hold. */
  public Lineage merge(Lineage... others) {
    Lineage result = this;
    for (Lineage other : others) {
      result = result.union(other);
    }
    return result;
  }

  private Lineage union(Lineage other) {
    return new Lineage(
        normalised(Sorted.union(writes, other.writes, WriteId.ORDER, WriteId::later)),
        Sorted.union(incomplete, other.incomplete, Incomplete.ORDER, (one, same) -> one),
        Sorted.union(promises, other.promises, Promise.ORDER, Promise::later),
        Long.compareUnsigned(openBranches, other.openBranches) >= 0
            ? openBranches
            : other.openBranches,
        Sorted.union(unknown, other.unknown, Comparator.naturalOrder(), (one, same) -> one));
  }

  /** Without the covering positions that the exact write in front of them makes needless. */
  private static List<WriteId> normalised(List<WriteId> sorted) {
    List<WriteId> result = new ArrayList<>(sorted.size());
    for (WriteId write : sorted) {
      WriteId last = result.isEmpty() ? null : result.get(result.size() - 1);
      if (!write.isCovering()
          || last == null
          || last.isCovering()
          || !last.isSameSlot(write)
          || !last.supersedes(write)) {
        result.add(write);
      }
    }
    return result.size() == sorted.size() ? sorted : List.copyOf(result);
  }

  /**
   * Returns this lineage without a write, exact and covering; its hour does not matter. Nothing
   * happens where a later version took its place.
   */
  public Lineage remove(WriteId write) {
    Objects.requireNonNull(write, "write");
    return new Lineage(
        Sorted.only(writes, held -> !held.isSameVersion(write)),
        incomplete,
        promises,
        openBranches,
        unknown);
  }

  /** Returns what this lineage holds of some datastores, and what cannot be attributed. */
  public Lineage only(String... datastores) {
    return only(Arrays.asList(datastores));
  }

  /** Returns what this lineage holds of some datastores, and what cannot be attributed. */
  public Lineage only(Collection<String> datastores) {
    Set<String> names = Set.copyOf(datastores);
    return new Lineage(
        Sorted.only(writes, write -> names.contains(write.datastore())),
        Sorted.only(incomplete, mark -> mark.subject().isEmpty() || names.contains(mark.subject())),
        Sorted.only(promises, promise -> names.contains(promise.datastore())),
        openBranches,
        unknown);
  }

  /**
   * Returns what whoever takes this lineage from elsewhere is to make of it: what it says of the
   * future is removed.
   *
   * @param now the present moment
   * @param maxPromise for how long anyone may make a promise
   */
  public Lineage received(Instant now, Duration maxPromise) {
    long hour = Math.min(Math.max(now.getEpochSecond() / 3_600, 0), WriteId.MAX_WRITTEN_HOUR);
    long latest =
        Math.min(Math.max(now.getEpochSecond() + maxPromise.toSeconds(), 0), Promise.MAX_EXPIRES_S);
    return new Lineage(
        writes.stream()
            .map(write -> write.writtenHour() > hour ? write.writtenAt(hour) : write)
            .toList(),
        incomplete,
        promises.stream()
            .map(
                promise ->
                    promise.expiresS() > latest
                        ? new Promise(promise.datastore(), promise.id(), latest)
                        : promise)
            .toList(),
        openBranches,
        unknown);
  }

  /** Returns what a scope holds of this lineage: shortened, with marks, where it is too much. */
  public Lineage holdable() {
    return Shortening.holdable(this, Shortening.Losses.IGNORED);
  }

  /** Returns what of this lineage is not in another one, or says more than that. */
  public Lineage beyond(Lineage came) {
    Builder added = builder();
    beyond(writes, came.writes).forEach(added::write);
    beyond(incomplete, came.incomplete).forEach(added::incomplete);
    beyond(unknown, came.unknown).forEach(added.unknown::add);
    promises.stream().filter(promise -> !came.covers(promise)).forEach(added::promise);
    if (Long.compareUnsigned(openBranches, came.openBranches) > 0) {
      added.openBranches(openBranches);
    }
    return added.build();
  }

  private static <T> List<T> beyond(List<T> held, List<T> came) {
    Set<T> known = Set.copyOf(came);
    return Sorted.only(held, item -> !known.contains(item));
  }

  private boolean covers(Promise promise) {
    return promises.stream()
        .anyMatch(
            held ->
                Promise.ORDER.compare(held, promise) == 0 && held.expiresS() >= promise.expiresS());
  }

  /** Returns this lineage as one that says that so many branches are open, or what it says. */
  public Lineage branching(long number) {
    return Long.compareUnsigned(number, openBranches) <= 0
        ? this
        : new Lineage(writes, incomplete, promises, number, unknown);
  }

  /** Returns this lineage without some promises. */
  public Lineage withoutPromises(Set<Promise.Name> names) {
    return promises.stream().noneMatch(promise -> names.contains(promise.name()))
        ? this
        : new Lineage(
            writes,
            incomplete,
            Sorted.only(promises, promise -> !names.contains(promise.name())),
            openBranches,
            unknown);
  }

  /** Returns this lineage without the notes that travel for a dry run. */
  public Lineage withoutNotes() {
    return unknown.stream().noneMatch(Lineage::isNote)
        ? this
        : new Lineage(
            writes,
            incomplete,
            promises,
            openBranches,
            Sorted.only(unknown, item -> !isNote(item)));
  }

  /** Whether an item of an unknown kind is a note of a dry run, or of a recorder of histories. */
  private static boolean isNote(String item) {
    return item.length() > 1 && item.charAt(0) == '0' && "ghmrv".indexOf(item.charAt(1)) >= 0;
  }

  /** Returns this lineage with items that this version does not know. */
  Lineage withUnknown(Collection<String> items) {
    if (items.isEmpty()) {
      return this;
    }
    Builder more = builder();
    items.forEach(more::unknown);
    return merge(more.build());
  }

  /** Returns the canonical text, however long. What is sent or stored is given a {@link Bound}. */
  public String serialize() {
    return Encoder.text(this);
  }

  /**
   * Returns the canonical text of as much of this lineage as a bound allows; marks say what is
   * missing.
   *
   * @throws LineageTooLargeException if the bound has no room for a mark
   */
  public String serialize(Bound bound) {
    return Shortening.text(this, bound, List.of(), Shortening.Losses.IGNORED);
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof Lineage lineage
        && openBranches == lineage.openBranches
        && writes.equals(lineage.writes)
        && incomplete.equals(lineage.incomplete)
        && promises.equals(lineage.promises)
        && unknown.equals(lineage.unknown);
  }

  @Override
  public int hashCode() {
    return Objects.hash(writes, incomplete, promises, openBranches, unknown);
  }

  @Override
  public String toString() {
    return "Lineage(" + serialize() + ")";
  }

  /** Makes a lineage of its parts. */
  public static final class Builder {
    private final List<WriteId> writes = new ArrayList<>();
    private final List<Incomplete> incomplete = new ArrayList<>();
    private final List<Promise> promises = new ArrayList<>();
    private final List<String> unknown = new ArrayList<>();
    private long openBranches;

    private Builder() {}

    /** Adds a write. */
    public Builder write(WriteId write) {
      writes.add(Objects.requireNonNull(write, "write"));
      return this;
    }

    /** Adds a mark. */
    public Builder incomplete(Incomplete mark) {
      incomplete.add(Objects.requireNonNull(mark, "mark"));
      return this;
    }

    /** Adds a promise. */
    public Builder promise(Promise promise) {
      promises.add(Objects.requireNonNull(promise, "promise"));
      return this;
    }

    /** Says that at least so many branches are open; the number is unsigned. */
    public Builder openBranches(long number) {
      if (Long.compareUnsigned(number, openBranches) > 0) {
        openBranches = number;
      }
      return this;
    }

    /** Adds an item of a kind that this version gives no meaning, or a text of another version. */
    public Builder unknown(String item) {
      unknown.add(Grammar.requireUnknown(item));
      return this;
    }

    /** Returns the lineage. */
    public Lineage build() {
      return new Lineage(
          normalised(Sorted.of(writes, WriteId.ORDER, WriteId::later)),
          Sorted.of(incomplete, Incomplete.ORDER, (one, same) -> one),
          Sorted.of(promises, Promise.ORDER, Promise::later),
          openBranches,
          Sorted.of(unknown, Comparator.naturalOrder(), (one, same) -> one));
    }
  }
}
