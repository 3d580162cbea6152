package io.antipode.barrier;

import io.antipode.Attachment;
import io.antipode.Scope;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The floors of one request by their datastores, as its scope keeps them. */
final class Floors implements Attachment<Floors> {
  private static final Key<Floors> KEY = new Key<>(Floors.class);

  private final Map<String, Floor> floors;

  private Floors(Map<String, Floor> floors) {
    this.floors = Map.copyOf(floors);
  }

  /** Makes the next reads of a floor's datastore wait for it, on top of earlier floors. */
  static void set(Scope scope, Floor floor) {
    scope.attach(KEY, new Floors(Map.of(floor.datastore(), floor)));
  }

  static @Nullable Floor in(Scope scope, String datastore) {
    Floors held = scope.attachment(KEY);
    return held == null ? null : held.floors.get(datastore);
  }

  @Override
  public Floors joined(Floors later) {
    Map<String, Floor> raised = new HashMap<>(floors);
    later.floors.forEach((datastore, floor) -> raised.merge(datastore, floor, Floor::raised));
    return new Floors(raised);
  }

  @Override
  public Floors branched(Set<String> own) {
    Map<String, Floor> lowered = new HashMap<>();
    floors.forEach((datastore, floor) -> lowered.put(datastore, floor.without(own)));
    return new Floors(lowered);
  }
}
