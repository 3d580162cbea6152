package io.antipode.messages;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import io.antipode.request.Recording;
import io.antipode.request.ScopeBlock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** What a dry run learns from the headers of messages. */
class MessageHeadersTest {
  private static final WriteId WRITE = WriteId.of("news", "publisher", 1);

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

  static Stream<Supplier<MessageHeaders.Sent>> ways() {
    return Stream.of(
        () -> MessageHeaders.outgoing(null, WRITE, "news"),
        () -> MessageHeaders.carrying(null, WRITE, Antipode.current(), "news"),
        () -> MessageHeaders.carrying(null, WRITE, Lineage.empty(), "news"));
  }

  @ParameterizedTest
  @MethodSource("ways")
  void aMessageWithinATransactionIsSentWhateverLineageItCarries(Supplier<MessageHeaders.Sent> way)
      throws IOException {
    Object connection = new Object();
    try (ScopeBlock request = Antipode.scope()) {
      Recording.recordUncommitted("posts", connection, true);
      MessageHeaders.Sent unused = way.get();
      Recording.recordUncommitted("posts", connection, false);
      unused = way.get();
    }
    Settings.configure(held -> before);
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(Files.readString(files.findFirst().orElseThrow()).split("in-transaction", -1))
          .as("said once")
          .hasSize(2);
    }
  }

  /** A message's lineage and the one that is handed on are shortened once, together. */
  @Test
  void aLineageThatIsHandedOnIsShortenedOnceWithTheMessages() {
    Settings.configure(held -> before.withMaxLineageBytes(64));
    WriteId[] writes =
        Stream.of("0", "1", "2", "3")
            .map(each -> WriteId.of("a", "key-" + each, 5))
            .toArray(WriteId[]::new);
    Lineage many = Lineage.of(writes).merge(Lineage.of(WriteId.of("a", "key-0", 7).asCovering()));
    Map<String, Object> headers = Map.of("baggage", "antipode=1~ka.9.key-0");
    String whole = "antipode=1~ka.5.key-1~ka.5.key-2~ka.5.key-3~ka.9.key-0";
    try (ScopeBlock request = Antipode.scope(many)) {
      assertThat(MessageHeaders.outgoing(headers, null, "news").headers())
          .containsEntry("baggage", whole);
      assertThat(MessageHeaders.carrying(headers, WRITE, many, "news").headers())
          .containsEntry("baggage", whole);
    }
  }
}
