package io.antipode;

/** What is done about something that is not as it should be. */
public enum Policy {
  /** It is an error. */
  RAISE,
  /** It is counted, logged once for each place, and passes. */
  REPORT
}
