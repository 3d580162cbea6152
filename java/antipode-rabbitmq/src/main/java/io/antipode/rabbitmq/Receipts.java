package io.antipode.rabbitmq;

import io.antipode.ConfigurationException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;

/** How a process learns which publications were routed in its region. A value. */
public final class Receipts {
  private static final Duration GAP_AGE = Duration.ofSeconds(5);

  private final List<String> bindings;
  private final Duration gapAge;

  private Receipts(List<String> bindings, Duration gapAge) {
    this.bindings = bindings;
    this.gapAge = gapAge;
  }

  /**
   * Returns receipts of everything that a topic, fanout or headers exchange routes: a private
   * queue, the tap, is bound to it with the key {@code #}.
   */
  public static Receipts ofExchange() {
    return bound("#");
  }

  /**
   * Returns receipts of what an exchange routes by these keys, as of a direct exchange. Their
   * publishers number by routing key.
   */
  public static Receipts bound(String... keys) {
    if (keys.length == 0) {
      throw new ConfigurationException("receipts need a routing key to bind the tap with");
    }
    return new Receipts(List.of(keys), GAP_AGE);
  }

  /**
   * Returns receipts without a tap: all that is known is what this process receives itself. For
   * queues whose messages all come here.
   */
  public static Receipts ofConsumers() {
    return new Receipts(List.of(), GAP_AGE);
  }

  /** Returns these receipts, where a publication that may have been missed counts so after this. */
  public Receipts withGapAge(Duration age) {
    if (Objects.requireNonNull(age, "age").isNegative() || age.isZero()) {
      throw new ConfigurationException("a gap's age must be positive, not " + age);
    }
    return new Receipts(bindings, age);
  }

  boolean hasTap() {
    return !bindings.isEmpty();
  }

  List<String> bindings() {
    return bindings;
  }

  Duration gapAge() {
    return gapAge;
  }
}
