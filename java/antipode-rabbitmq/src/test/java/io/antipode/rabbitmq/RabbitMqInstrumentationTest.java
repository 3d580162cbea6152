package io.antipode.rabbitmq;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a dry run learns from messages that are consumed. */
class RabbitMqInstrumentationTest {
  @TempDir Path folder;
  private final Settings before = Settings.current();

  @BeforeEach
  void begin() {
    Settings.configure(held -> before.withMode(Mode.DRY_RUN).withDryRunDir(folder));
  }

  @AfterEach
  void restore() {
    Settings.configure(held -> before);
  }

  /** What no publisher of ours sent is a lint; of ours, also with an empty lineage, it is none. */
  @Test
  void aMessageWithoutALineageIsALint() throws IOException {
    RabbitMqInstrumentation news = RabbitMqInstrumentation.of("news");
    for (String baggage : List.of("", "user=1", "antipode=1", "user=1,antipode=unreadable")) {
      Map<String, Object> headers = baggage.isEmpty() ? null : Map.of("baggage", baggage);
      try (ScopeBlock request = news.message(headers)) {
        assertThat(Antipode.current().writes()).isEmpty();
      }
    }
    Settings.configure(held -> before);
    try (Stream<Path> files = Files.list(folder)) {
      String records = Files.readString(files.findFirst().orElseThrow());
      assertThat(records.split("\"message-without-lineage\",\"datastore\":\"news\"", -1))
          .hasSize(3);
    }
  }
}
