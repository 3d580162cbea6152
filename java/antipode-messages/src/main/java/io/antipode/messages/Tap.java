package io.antipode.messages;

/** What listens to a broker for receipts. */
public interface Tap {
  /**
   * Returns what distinguishes the present connection from earlier ones; empty without a
   * connection.
   */
  String queue();

  /** Returns why nothing is heard at present; empty while it listens. */
  String deaf();

  /** Returns why a publication may not have been seen. */
  String unseen();
}
