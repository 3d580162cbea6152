package io.antipode.lineage;

import java.util.Comparator;

/**
 * A mark: something of a subject is known to be missing.
 *
 * @param subject a datastore or a service; empty where it is not known
 * @param reason why it is missing, such as {@code size}, {@code in_doubt} or {@code unreadable}
 */
public record Incomplete(String subject, String reason) {
  static final Comparator<Incomplete> ORDER =
      Comparator.comparing(Incomplete::subject).thenComparing(Incomplete::reason);

  /** Checks that both can be put on the wire. */
  public Incomplete {
    Grammar.requireText(subject, "subject");
    Grammar.requireText(reason, "reason");
  }
}
