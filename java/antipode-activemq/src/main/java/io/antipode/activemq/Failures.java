package io.antipode.activemq;

import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.ResourceAllocationException;

/** What an error of the client says of a message. */
final class Failures {
  private Failures() {}

  /** Returns whether the broker does not have a message: it was not sent, or refused. */
  static boolean isUnsent(Throwable error) {
    Throwable told =
        error instanceof JMSRuntimeException && error.getCause() instanceof JMSException cause
            ? cause
            : error;
    return told instanceof IllegalStateException
        || told instanceof InvalidDestinationException
        || told instanceof JMSSecurityException
        || told instanceof MessageFormatException
        || told instanceof MessageNotWriteableException
        || told instanceof ResourceAllocationException
        || told instanceof UnsupportedOperationException
        || told instanceof IllegalArgumentException
        || told instanceof NullPointerException;
  }
}
