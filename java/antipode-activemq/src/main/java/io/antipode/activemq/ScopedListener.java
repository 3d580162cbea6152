package io.antipode.activemq;

import io.antipode.request.ScopeBlock;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import org.jspecify.annotations.Nullable;

/** A listener that handles each message in a scope of its own. */
record ScopedListener(MessageListener real, ActiveMqInstrumentation instrumentation)
    implements MessageListener {
  @Override
  public void onMessage(Message message) {
    try (ScopeBlock block = instrumentation.message(message)) {
      real.onMessage(message);
    }
  }

  /** Returns the application's listener. */
  static @Nullable Object real(@Nullable Object listener) {
    return listener instanceof ScopedListener scoped ? scoped.real : listener;
  }
}
