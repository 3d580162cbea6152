package io.antipode.rabbitmq;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Consumer;
import com.rabbitmq.client.DeliverCallback;
import com.rabbitmq.client.GetResponse;
import io.antipode.Settings;
import io.antipode.lineage.WriteId;
import io.antipode.messages.MessageHeaders;
import io.antipode.messages.Proxies;
import io.antipode.messages.Publications;
import io.antipode.messages.Unconfirmed;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import io.antipode.request.ScopeBlock;
import io.antipode.runtime.Counts;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** The proxy of a channel that carries lineages. Results and errors stay the client's. */
final class InstrumentedChannel implements InvocationHandler {
  private final Channel real;
  private final RabbitMqInstrumentation instrumentation;
  private final Publications publications;
  private final Confirms confirms;

  /** Held from the tag of a publication until it is sent. */
  private final ReentrantLock sending = new ReentrantLock();

  private volatile boolean isTransactional;

  /** Whether the client and the broker count alike; not after a message that was not encoded. */
  private volatile boolean isCountable = true;

  private InstrumentedChannel(Channel real, RabbitMqInstrumentation instrumentation) {
    this.real = real;
    this.instrumentation = instrumentation;
    this.publications =
        new Publications(instrumentation.datastore(), instrumentation.isByRoutingKey());
    this.confirms = new Confirms(publications);
    confirms.listen(real);
  }

  static Channel of(Channel real, RabbitMqInstrumentation instrumentation) {
    return Proxies.isOf(real, InstrumentedChannel.class)
        ? real
        : (Channel) Proxies.of(real, new InstrumentedChannel(real, instrumentation));
  }

  /** Returns the channel itself, of one that may be instrumented. */
  static Channel real(Channel channel) {
    return Proxies.isOf(channel, InstrumentedChannel.class)
        ? ((InstrumentedChannel) Proxy.getInvocationHandler(channel)).real
        : channel;
  }

  @Override
  public @Nullable Object invoke(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    if (arguments != null) {
      if (method.getName().equals("basicPublish")) {
        publish(face, method, arguments);
        return null;
      }
      for (int each = 0; each < arguments.length; each++) {
        arguments[each] = consuming(arguments[each]);
      }
    }
    return switch (method.getName()) {
      case "txSelect" -> {
        isTransactional = true;
        yield Proxies.invoke(face, method, real, arguments);
      }
      case "waitForConfirms", "waitForConfirmsOrDie" -> confirmed(face, method, arguments);
      case "clearConfirmListeners" -> {
        Proxies.invoke(face, method, real, arguments);
        real.addConfirmListener(confirms);
        yield null;
      }
      case "clearReturnListeners" -> {
        Proxies.invoke(face, method, real, arguments);
        real.addReturnListener(confirms);
        yield null;
      }
      case "basicGet" -> got(Proxies.invoke(face, method, real, arguments));
      default -> Proxies.invoke(face, method, real, arguments);
    };
  }

  // What is published.

  private void publish(Object face, Method method, Object[] arguments) throws Throwable {
    String exchange = (String) arguments[0];
    String key = (String) arguments[1];
    int last = arguments.length - 2;
    BasicProperties given =
        arguments[last] == null ? new BasicProperties() : (BasicProperties) arguments[last];
    Frame frame = Frame.of(real);
    frame.requireSendable(exchange, key, given);
    sending.lock();
    try {
      long tag = isCountable && !isTransactional ? real.getNextPublishSeqNo() : 0;
      @Nullable WriteId named = named(exchange, key, tag > 0);
      @Nullable WriteId write = named;
      @Nullable Unconfirmed message =
          named == null || tag <= 0 ? null : confirms.sending(tag, named);
      try {
        MessageHeaders.Sent headers =
            confirms.connection().sending(() -> headers(frame, given, named));
        if (write != null && !headers.isNamed()) {
          confirms.unsent(tag, write);
          Recording.markIncomplete(instrumentation.datastore(), "unsampled");
          write = null;
        } else if (message != null) {
          message.sent();
        }
        arguments[last] = given.builder().headers(headers.headers()).build();
        send(face, method, arguments, headers);
      } catch (Throwable error) {
        failed(error, tag, write);
        throw error;
      }
      sent(write, tag > 0);
    } finally {
      sending.unlock();
    }
  }

  /** Returns headers that fit; as the application gave them, and counted, where ours do not. */
  private MessageHeaders.Sent headers(Frame frame, BasicProperties given, @Nullable WriteId write)
      throws IOException {
    String datastore = instrumentation.datastore();
    @Nullable Map<String, Object> headers = Texts.of(given.getHeaders());
    MessageHeaders.Sent all = MessageHeaders.outgoing(headers, write, datastore);
    MessageHeaders.Sent fitting = frame.fitting(given, all);
    if (fitting != null) {
      return fitting;
    }
    Counts.count("baggage_dropped", datastore);
    Counts.logOnce(
        "baggage_dropped",
        datastore,
        "frame",
        () ->
            "the headers of a message to '"
                + datastore
                + "' fill its frame: it was sent without its lineage and its name. Use larger"
                + " frames, or shorter headers");
    return MessageHeaders.plain(headers);
  }

  private void send(Object face, Method method, Object[] arguments, MessageHeaders.Sent headers)
      throws Throwable {
    try (io.opentelemetry.context.Scope within = headers.context().makeCurrent()) {
      Object ignored = Proxies.invoke(face, method, real, arguments);
    }
  }

  /**
   * Returns the name of the next publication; null for one that has none. Nothing is known of one
   * without a confirm, so that it is named only where readers have receipts; of one in a
   * transaction not even that it was sent, so that it is in doubt there.
   */
  private @Nullable WriteId named(String exchange, String key, boolean isConfirmed) {
    String datastore = instrumentation.datastore();
    if (!instrumentation.hears(exchange)) {
      Counts.count("unheard_publish", datastore);
      return null;
    }
    if (!isConfirmed) {
      Counts.count("unconfirmed_publish", datastore);
      if (!instrumentation.hasReceipts()) {
        return null;
      }
      if (isTransactional) {
        Recording.markIncomplete(datastore, "in_doubt");
        return null;
      }
    }
    return publications.next(exchange, key);
  }

  private void sent(@Nullable WriteId write, boolean isConfirmed) {
    if (write == null) {
      return;
    }
    if (!isConfirmed) {
      Recording.recordWrite(write);
    } else if (Scope.currentOrNull() == null) {
      Recording.unscoped("write", write.datastore(), Settings.current().onUnscoped());
    }
  }

  private void failed(Throwable error, long tag, @Nullable WriteId write) {
    boolean isClosed = error instanceof AlreadyClosedException;
    boolean isUnsent =
        isClosed
            || error instanceof IllegalArgumentException
            || error instanceof NullPointerException;
    if (write != null && isUnsent) {
      confirms.unsent(tag, write);
    } else if (write != null) {
      publications.end(write);
      if (tag <= 0) {
        Recording.markIncomplete(instrumentation.datastore(), "in_doubt");
      }
    }
    if (isClosed || !isUnsent) {
      confirms.doubtAll();
    } else {
      isCountable = false;
    }
  }

  /** Who waits in vain does not know what became of what was published. */
  private @Nullable Object confirmed(Object face, Method method, Object @Nullable [] arguments)
      throws Throwable {
    try {
      return Proxies.invoke(face, method, real, arguments);
    } catch (Throwable error) {
      confirms.doubtAll();
      throw error;
    }
  }

  // What is consumed.

  /** Returns a callback whose messages have a scope each; anything else as it is. */
  private @Nullable Object consuming(@Nullable Object argument) {
    if (argument instanceof Consumer consumer) {
      return new ScopedConsumer(consumer, instrumentation);
    }
    if (argument instanceof DeliverCallback callback) {
      return (DeliverCallback)
          (tag, delivery) -> {
            try (ScopeBlock block =
                instrumentation.message(delivery.getProperties().getHeaders())) {
              callback.handle(tag, delivery);
            }
          };
    }
    return argument;
  }

  private @Nullable Object got(@Nullable Object result) {
    if (result instanceof GetResponse got) {
      Recording.recordRead(instrumentation.lineage(got.getProps().getHeaders()));
    }
    return result;
  }
}
