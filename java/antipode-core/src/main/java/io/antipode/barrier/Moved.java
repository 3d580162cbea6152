package io.antipode.barrier;

import io.antipode.request.Attachment;
import io.antipode.request.Scope;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Requests whose reads of a datastore went to its primary: they stay there until they end. What was
 * read there may be newer than what moved it, so that a request that went back to the replica as
 * soon as that one shows the cause could go back in time.
 */
public final class Moved implements Attachment<Moved> {
  private static final Attachment.Key<Moved> KEY = new Attachment.Key<>(Moved.class);

  private final Map<String, UnmetException> causes;

  private Moved(Map<String, UnmetException> causes) {
    this.causes = Map.copyOf(causes);
  }

  @Override
  public Moved joined(Moved later) {
    Map<String, UnmetException> both = new HashMap<>(causes);
    both.putAll(later.causes);
    return new Moved(both);
  }

  @Override
  public Moved branched(Set<String> own) {
    return this;
  }

  /** Has the reads of a datastore by a request stay at the primary; without a scope, nothing. */
  public static void move(@Nullable Scope request, String datastore, UnmetException cause) {
    if (request != null) {
      request.attach(KEY, new Moved(Map.of(datastore, cause)));
    }
  }

  /** Returns why the next read of a datastore is made at the primary, or null where it is not. */
  public static @Nullable UnmetException cause(@Nullable Scope request, String datastore) {
    Moved moved = request == null ? null : request.attachment(KEY);
    return moved == null ? null : moved.causes.get(datastore);
  }
}
