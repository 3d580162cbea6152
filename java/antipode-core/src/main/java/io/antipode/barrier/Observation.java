package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** What one server showed of some writes and promises at one poll. */
public final class Observation {
  /** What is said of one dependency. */
  record Said(Status status, String cause) {}

  private static final Said NOTHING = new Said(Status.NOT_YET, "");
  private static final Said VISIBLE = new Said(Status.VISIBLE, "");

  private final String server;
  private final Map<Dependency, Said> said;
  private final @Nullable Duration eta;
  private final String caveat;

  private Observation(
      String server, Map<Dependency, Said> said, @Nullable Duration eta, String caveat) {
    this.server = server;
    this.said = said;
    this.eta = eta;
    this.caveat = caveat;
  }

  /**
   * Returns a builder of what a server showed.
   *
   * @param server its incarnation: changes whenever its history may have, and never is an address
   */
  public static Builder of(String server) {
    return new Builder(Objects.requireNonNull(server, "server"));
  }

  /** Returns the incarnation of the server. */
  public String server() {
    return server;
  }

  /**
   * Returns after which the last of them may be visible; null where the store cannot estimate it.
   */
  @Nullable Duration eta() {
    return eta;
  }

  Map<Dependency, Said> said() {
    return said;
  }

  String caveat() {
    return caveat;
  }

  /** Returns the outcome of a dependency, and its cause. What was left out is not yet visible. */
  Said about(Dependency dependency) {
    Said found = said.getOrDefault(dependency, NOTHING);
    boolean plain =
        found.status == Status.VISIBLE && found.cause.isEmpty() && dependency instanceof WriteId;
    return plain && !caveat.isEmpty() ? new Said(found.status, caveat) : found;
  }

  /** Returns the outcome of a dependency. */
  public Status status(Dependency dependency) {
    return about(dependency).status();
  }

  /** Returns this observation with what another poll of the same history showed. */
  public Observation with(Observation other) {
    Map<Dependency, Said> both = new HashMap<>(said);
    both.putAll(other.said);
    return new Observation(server, both, other.eta == null ? eta : other.eta, other.caveat);
  }

  /** Returns this observation with writes that are visible there, too. */
  Observation withVisible(Collection<WriteId> writes) {
    Map<Dependency, Said> both = new HashMap<>(said);
    writes.forEach(each -> both.put(each, VISIBLE));
    return new Observation(server, both, eta, caveat);
  }

  /** Returns this observation with another status wherever it has one. */
  public Observation with(Status held, Status other) {
    Map<Dependency, Said> changed = new HashMap<>(said);
    changed.replaceAll((each, was) -> was.status == held ? new Said(other, was.cause) : was);
    return new Observation(server, Map.copyOf(changed), eta, caveat);
  }

  /** Makes an observation. */
  public static final class Builder {
    private final String server;
    private final Map<Dependency, Said> said = new HashMap<>();
    private @Nullable Duration eta;
    private String caveat = "";

    private Builder(String server) {
      this.server = server;
    }

    /** Says what was seen of a write. One that is left out is not yet visible. */
    public Builder write(WriteId write, Status status) {
      return write(write, status, "");
    }

    /** Says what was seen of a write, and why, for people. */
    public Builder write(WriteId write, Status status, String cause) {
      said.put(write, new Said(status, cause));
      return this;
    }

    /** Says what the record of a promise says: visible, abandoned, or not yet without one. */
    public Builder promise(Promise promise, Status status) {
      return promise(promise, status, "");
    }

    /** Says what the record of a promise says, and why, for people. */
    public Builder promise(Promise promise, Status status, String cause) {
      said.put(promise, new Said(status, cause));
      return this;
    }

    /** Says after which the last of them may be visible. */
    public Builder eta(Duration eta) {
      this.eta = eta;
      return this;
    }

    /** Says, for people, what is to be said of every write that is visible there. */
    public Builder caveat(String caveat) {
      this.caveat = caveat;
      return this;
    }

    /** Returns the observation. */
    public Observation build() {
      return new Observation(server, Map.copyOf(said), eta, caveat);
    }
  }
}
