package io.antipode.request;

import io.antipode.lineage.Lineage;
import java.util.function.Supplier;

/**
 * A deferred sample that is taken each time that a lineage is used, as long as what it is of may
 * change unseen. For shims.
 */
public interface Standing extends Supplier<Lineage> {
  /** Returns whether nothing changes any more: the next answer is the last. */
  boolean isOver();
}
