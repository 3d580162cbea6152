package io.antipode.barrier;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * What became of one dependency.
 *
 * @param dependency the write or promise
 * @param status its outcome
 * @param waited from the start of the barrier to this outcome
 * @param server the incarnation of the server that showed it; empty where none did
 * @param cause what the server or the check said, for people; may be empty
 * @param reported whether a policy lets it pass, although it is unmet as such
 */
public record Outcome(
    Dependency dependency,
    Status status,
    Duration waited,
    String server,
    String cause,
    boolean reported) {
  /** By datastore, key and version. */
  static final Comparator<Outcome> ORDER =
      Comparator.comparing(Outcome::dependency, Outcome::compare);

  private static final int MOST_DESCRIBED = 5;

  /** Checks that nothing is missing. */
  public Outcome {
    Objects.requireNonNull(dependency, "dependency");
    Objects.requireNonNull(status, "status");
  }

  static Outcome of(Dependency dependency, Status status, String cause) {
    return new Outcome(dependency, status, Duration.ZERO, "", cause, false);
  }

  Outcome withStatus(Status status, String cause) {
    return new Outcome(dependency, status, waited, server, cause, reported);
  }

  Outcome withReported(boolean reported) {
    return new Outcome(dependency, status, waited, server, cause, reported);
  }

  /** Returns whether this outcome lets the barrier succeed. */
  public boolean isMet() {
    return reported || status.isMet();
  }

  @Override
  public String toString() {
    return dependency + " " + status + (cause.isEmpty() ? "" : " (" + cause + ")");
  }

  /** Returns the first few outcomes in one line. */
  static String describe(List<Outcome> outcomes) {
    String line =
        outcomes.stream()
            .limit(MOST_DESCRIBED)
            .map(Outcome::toString)
            .collect(Collectors.joining("; "));
    int left = outcomes.size() - MOST_DESCRIBED;
    return left > 0 ? line + ", and " + left + " more" : line;
  }

  private static int compare(Dependency one, Dependency other) {
    int order = one.datastore().compareTo(other.datastore());
    if (order == 0) {
      order = key(one).compareTo(key(other));
    }
    if (order != 0 || !(one instanceof WriteId left) || !(other instanceof WriteId right)) {
      return order != 0 ? order : Boolean.compare(one instanceof Promise, other instanceof Promise);
    }
    order = Boolean.compare(left.isCovering(), right.isCovering());
    if (order != 0) {
      return order;
    }
    @Nullable String leftVersion = left.opaqueVersion();
    @Nullable String rightVersion = right.opaqueVersion();
    if (leftVersion == null && rightVersion == null) {
      return Long.compareUnsigned(left.version(), right.version());
    }
    return Comparator.nullsFirst(Comparator.<String>naturalOrder())
        .compare(leftVersion, rightVersion);
  }

  private static String key(Dependency dependency) {
    if (dependency instanceof Promise promise) {
      return promise.id();
    }
    return ((WriteId) dependency).key();
  }
}
