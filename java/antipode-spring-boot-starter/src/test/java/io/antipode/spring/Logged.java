package io.antipode.spring;

import io.antipode.runtime.Counts;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** What the library logs during a test, whatever level an application of an earlier test set. */
final class Logged extends Handler implements BeforeEachCallback, AfterEachCallback {
  private final List<String> lines = new CopyOnWriteArrayList<>();
  private @Nullable Level before;

  /** Returns its messages, each a line. */
  String text() {
    return String.join("\n", lines);
  }

  @Override
  public void beforeEach(ExtensionContext context) {
    before = Counts.LOG.getLevel();
    Counts.LOG.setLevel(Level.INFO);
    Counts.LOG.addHandler(this);
  }

  @Override
  public void afterEach(ExtensionContext context) {
    Counts.LOG.removeHandler(this);
    Counts.LOG.setLevel(before);
  }

  @Override
  public void publish(LogRecord logged) {
    lines.add(logged.getMessage());
  }

  @Override
  public void flush() {}

  @Override
  public void close() {}
}
