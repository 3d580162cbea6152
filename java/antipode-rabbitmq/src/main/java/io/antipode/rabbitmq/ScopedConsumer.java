package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Consumer;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.ShutdownSignalException;
import io.antipode.request.ScopeBlock;
import java.io.IOException;

/** A consumer that handles each message in a scope of its own. */
final class ScopedConsumer implements Consumer {
  private final Consumer real;
  private final RabbitMqInstrumentation instrumentation;

  ScopedConsumer(Consumer real, RabbitMqInstrumentation instrumentation) {
    this.real = real;
    this.instrumentation = instrumentation;
  }

  @Override
  public void handleDelivery(String tag, Envelope envelope, BasicProperties properties, byte[] body)
      throws IOException {
    try (ScopeBlock block = instrumentation.message(properties.getHeaders())) {
      real.handleDelivery(tag, envelope, properties, body);
    }
  }

  @Override
  public void handleConsumeOk(String tag) {
    real.handleConsumeOk(tag);
  }

  @Override
  public void handleCancelOk(String tag) {
    real.handleCancelOk(tag);
  }

  @Override
  public void handleCancel(String tag) throws IOException {
    real.handleCancel(tag);
  }

  @Override
  public void handleShutdownSignal(String tag, ShutdownSignalException signal) {
    real.handleShutdownSignal(tag, signal);
  }

  @Override
  public void handleRecoverOk(String tag) {
    real.handleRecoverOk(tag);
  }
}
