package io.antipode.mongodb;

/** What happened in one session of the application. One thread at a time uses a session. */
final class SessionState {
  /** Whether its transaction wrote; so it is taken where its beginning was not seen. */
  private volatile boolean hasWritten = true;

  /** What its snapshot is known to show. */
  private volatile Shown proved = Shown.NOTHING;

  boolean hasWritten() {
    return hasWritten;
  }

  Shown proved() {
    return proved;
  }

  void begin() {
    hasWritten = false;
    proved = Shown.NOTHING;
  }

  void write() {
    hasWritten = true;
  }

  void prove(Shown shown) {
    proved = shown;
  }
}
