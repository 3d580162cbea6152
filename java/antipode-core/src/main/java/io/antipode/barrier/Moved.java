package io.antipode.barrier;

import io.antipode.request.Attachment;
import io.antipode.request.Scope;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Requests whose reads of a datastore went to its primary: they stay there until they end. What was
 * read there may be newer than what moved it, so that a request that went back to the replica as
 * soon as that one shows the cause could go back in time.
 */
public final class Moved implements Attachment<Moved> {
  private static final Attachment.Key<Moved> KEY = new Attachment.Key<>(Moved.class);

  /** After this, a request that goes on may ask whether it can go back, each time. */
  private static final long LONG_NS = Duration.ofSeconds(30).toNanos();

  private record Move(UnmetException cause, long atNs) {}

  /** By datastore; empty where its reads went back. */
  private final Map<String, Optional<Move>> moves;

  private Moved(Map<String, Optional<Move>> moves) {
    this.moves = Map.copyOf(moves);
  }

  @Override
  public Moved joined(Moved later) {
    Map<String, Optional<Move>> both = new HashMap<>(moves);
    both.putAll(later.moves);
    return new Moved(both);
  }

  @Override
  public Moved branched(Set<String> own) {
    return this;
  }

  /** Has the reads of a datastore by a request stay at the primary; without a scope, nothing. */
  public static void move(@Nullable Scope request, String datastore, UnmetException cause) {
    if (request != null) {
      move(request, datastore, cause, Clock.system());
    }
  }

  static void move(Scope request, String datastore, UnmetException cause, Clock clock) {
    Optional<Move> move = Optional.of(new Move(cause, clock.nanoTime()));
    request.attach(KEY, new Moved(Map.of(datastore, move)));
  }

  /** Has the reads of a datastore by a request be made at the replica again. */
  static void goBack(Scope request, String datastore) {
    request.attach(KEY, new Moved(Map.of(datastore, Optional.empty())));
  }

  /** Returns why the next read of a datastore is made at the primary, or null where it is not. */
  public static @Nullable UnmetException cause(@Nullable Scope request, String datastore) {
    Move move = moveOf(request, datastore);
    return move == null ? null : move.cause;
  }

  /** Returns whether reads were moved so long ago that they may go back. */
  static boolean isLong(Scope request, String datastore, Clock clock) {
    Move move = moveOf(request, datastore);
    return move != null && clock.nanoTime() - move.atNs > LONG_NS;
  }

  private static @Nullable Move moveOf(@Nullable Scope request, String datastore) {
    Moved moved = request == null ? null : request.attachment(KEY);
    Optional<Move> found = moved == null ? null : moved.moves.get(datastore);
    return found == null ? null : found.orElse(null);
  }
}
