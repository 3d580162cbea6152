package io.antipode.mysql;

/** A text is no GTID, and no set of them. */
final class NoGtidException extends Exception {
  private static final long serialVersionUID = 1L;

  NoGtidException(String text) {
    super("not a set of GTIDs: '" + text.substring(0, Math.min(text.length(), 80)) + "'");
  }
}
