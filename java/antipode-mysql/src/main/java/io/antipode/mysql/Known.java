package io.antipode.mysql;

/** What is known of something that may be so. */
enum Known {
  YES,
  NO,
  UNKNOWN;

  static Known of(boolean is) {
    return is ? YES : NO;
  }

  /** Returns what is known where somebody else says something, too: two that differ say nothing. */
  Known confirmedBy(Known other) {
    return other == UNKNOWN || other == this ? this : UNKNOWN;
  }
}
