package io.antipode.lineage;

import java.util.Collection;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What a text may hold: how many bytes, and of which datastores. */
public final class Bound {
  private static final Bound NONE = new Bound(Integer.MAX_VALUE, null);

  private final int maxBytes;
  private final @Nullable Set<String> egress;

  private Bound(int maxBytes, @Nullable Set<String> egress) {
    this.maxBytes = maxBytes;
    this.egress = egress;
  }

  /** Returns the bound that is the limits of decoding alone. */
  public static Bound none() {
    return NONE;
  }

  /** Returns a bound of so many bytes, those of {@code antipode=} included. */
  public static Bound ofBytes(int maxBytes) {
    if (maxBytes <= 0) {
      throw new IllegalArgumentException("a bound is a positive number of bytes");
    }
    return new Bound(maxBytes, null);
  }

  /** Returns this bound for a text that may name these datastores and services alone. */
  public Bound withEgress(Collection<String> names) {
    return new Bound(maxBytes, Set.copyOf(names));
  }

  int maxBytes() {
    return maxBytes;
  }

  @Nullable Set<String> egress() {
    return egress;
  }
}
