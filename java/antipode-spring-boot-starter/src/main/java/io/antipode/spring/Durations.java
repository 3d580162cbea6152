package io.antipode.spring;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.convert.DurationStyle;

/**
 * How properties and annotations spell a duration: as Spring Boot does; a bare number is seconds.
 */
final class Durations {
  private static final int NANOS = 9;

  private Durations() {}

  /** Returns a duration; null for a text that is none. */
  static @Nullable Duration parsedOrNull(String text) {
    try {
      return DurationStyle.detectAndParse(text.strip(), ChronoUnit.SECONDS);
    } catch (IllegalArgumentException | ArithmeticException error) {
      return null;
    }
  }

  /** Returns a text as settings take it, of one that may be a duration of Spring's. */
  static String setting(String text) {
    Duration parsed = parsedOrNull(text);
    return parsed == null
        ? text
        : BigDecimal.valueOf(parsed.getSeconds())
            .add(BigDecimal.valueOf(parsed.getNano(), NANOS))
            .stripTrailingZeros()
            .toPlainString();
  }
}
