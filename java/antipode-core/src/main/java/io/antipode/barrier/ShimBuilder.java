package io.antipode.barrier;

import java.util.Objects;

/**
 * Describes a shim: what shims of all stores have in common.
 *
 * @param <B> the builder itself
 * @param <S> the shim that it makes
 */
public abstract class ShimBuilder<B extends ShimBuilder<B, S>, S extends Shim> {
  final String datastore;
  ReadsFrom readsFrom = ReadsFrom.PRIMARY;
  boolean mergesReads = true;

  /**
   * Names the datastore.
   *
   * @param datastore the name that every service spells alike
   */
  protected ShimBuilder(String datastore) {
    this.datastore = Objects.requireNonNull(datastore, "datastore");
  }

  /** Returns this builder, as what it is. */
  protected abstract B self();

  /** Returns the shim, which nothing knows yet. */
  protected abstract S build();

  /** Says whether this process reads from the primary, which is the default, or a replica. */
  public final B readsFrom(ReadsFrom readsFrom) {
    this.readsFrom = Objects.requireNonNull(readsFrom, "readsFrom");
    return self();
  }

  /** Lets the shim's own reads add nothing to the current scope. */
  public final B ignoringReads() {
    this.mergesReads = false;
    return self();
  }

  /**
   * Returns the shim, which barriers know from now on. It connects to nothing yet, unless its
   * builder says so.
   *
   * @throws io.antipode.ConfigurationException if what was described cannot work
   */
  public final S register() {
    S shim = build();
    Shims.register(shim);
    return shim;
  }
}
