package io.antipode.postgresql;

import io.antipode.lineage.Incomplete;
import io.antipode.lineage.Lineage;
import io.antipode.runtime.Counts;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What one text committed before it left a transaction open, in which nothing can be asked. It is
 * asked for when that transaction is over; a lineage that is used before is in doubt. Thread-safe.
 */
final class CommittedBefore implements Supplier<Lineage> {
  private final String datastore;
  private volatile @Nullable Supplier<Lineage> found;

  /** In a datastore. */
  CommittedBefore(String datastore) {
    this.datastore = datastore;
  }

  /** It was found: a position that covers it, or what says that there is none. */
  void settle(Supplier<Lineage> position) {
    found = position;
  }

  @Override
  public Lineage get() {
    Supplier<Lineage> position = found;
    if (position != null) {
      return position.get();
    }
    Counts.count("incomplete", datastore);
    Counts.logOnce(
        "postgresql_left_open",
        datastore,
        "",
        () ->
            "the lineage of a write to "
                + datastore
                + " was used before the transaction ended that its own text began: it is"
                + " incomplete (in_doubt). Send COMMIT and BEGIN as statements of their own");
    return Lineage.empty().marked(new Incomplete(datastore, "in_doubt"));
  }
}
