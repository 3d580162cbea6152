package io.antipode.together;

import io.antipode.lineage.Lineage;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A value in a cache, with what was added to the scope of the work that made it.
 *
 * @param <V> of the value
 * @param value what the cache is for; null where the work found none
 * @param lineage what it depends on; empty for one of which nothing is known
 */
public record Kept<V>(@Nullable V value, Lineage lineage) {
  /** Has a lineage. */
  public Kept {
    Objects.requireNonNull(lineage, "lineage");
  }
}
