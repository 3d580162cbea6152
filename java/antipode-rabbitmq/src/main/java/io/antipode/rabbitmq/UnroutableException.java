package io.antipode.rabbitmq;

import java.io.IOException;

/** A mandatory message came back: no queue takes it, and no broker has it. */
public final class UnroutableException extends IOException {
  private static final long serialVersionUID = 1L;

  UnroutableException(String message) {
    super(message);
  }
}
