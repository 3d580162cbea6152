package io.antipode.redis;

import io.antipode.barrier.Observation;
import io.antipode.barrier.Status;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** What the shim of Redis decides without a server: next to what it is made of. */
public final class RedisDecisions {
  private RedisDecisions() {}

  /** What a server answers to one question: lines, or an error. */
  public record Answer(@Nullable String info, @Nullable String error) {}

  /**
   * Returns what a poll says of each write.
   *
   * @param first the answer to the first question, and {@code then} that to a second one
   * @param ends what its log history has of a log; null for nothing
   */
  public static List<Status> poll(
      Answer first, Answer then, Function<String, @Nullable String> ends, List<WriteId> writes) {
    LogHistory history = new LogHistory();
    @Nullable ServerState state = state(first);
    if (state == null) {
      return refused(first, writes);
    }
    Observation shown = observation(state, writes, history);
    List<String> logs = Positions.unknownLogs(shown, writes);
    if (!logs.isEmpty()) {
      @Nullable ServerState later = state(then);
      if (later == null) {
        return refused(then, writes);
      }
      List<@Nullable String> values = new ArrayList<>();
      logs.forEach(log -> values.add(ends.apply(log)));
      history.learn(later.log(), logs, values);
      shown = observation(later, writes, history);
    }
    Observation seen = shown;
    return writes.stream().map(seen::status).toList();
  }

  private static @Nullable ServerState state(Answer answer) {
    return answer.info == null ? null : ServerState.parse(answer.info);
  }

  private static Observation observation(
      ServerState state, List<WriteId> writes, LogHistory history) {
    return Positions.observation(state, "", writes, history, List.of(), List.of());
  }

  private static List<Status> refused(Answer answer, List<WriteId> writes) {
    boolean isPassing = answer.error != null && Positions.isPassing(answer.error);
    Status status = isPassing ? Status.UNREACHABLE : Status.UNDECIDABLE;
    return writes.stream().map(each -> status).toList();
  }

  /** What a write or a read enters, and what is noted about logs that ended. */
  public record Token(Lineage lineage, Map<String, Long> notes) {}

  /** Returns what comes of a server's answers before and after a command. */
  public static Token token(String after, Answer before, Answer behind) {
    @Nullable ServerState state = state(behind);
    Lineage lineage =
        switch (after) {
          case "read" -> Tokens.ofRead("posts", state);
          case "unknown" -> Tokens.ofUnknown("posts", state(before), state);
          default -> Tokens.ofWrite("posts", state);
        };
    boolean isRead = after.equals("read");
    return new Token(lineage, state == null || isRead ? Map.of() : Tokens.notes(state));
  }

  /** Returns what a command does, by its words. */
  public static String kind(List<String> words) {
    return Commands.kind(words).name().toLowerCase(Locale.ROOT);
  }

  /** What commands do that are sent at once. */
  public record Batch(boolean reads, boolean mayWrite, boolean isRepeatable) {}

  /** Returns what commands do that are sent at once. */
  public static Batch batch(List<List<String>> commands) {
    List<Commands.Kind> kinds = commands.stream().map(Commands::kind).toList();
    return new Batch(
        kinds.stream().anyMatch(Commands.Kind::reads),
        Commands.mayWrite(kinds),
        kinds.stream().allMatch(Commands.Kind::isRepeatable));
  }

  /** Returns the companion of a value; null for a deletion. */
  public static String stored(@Nullable String value, String lineage) {
    return Companion.pack(bytes(value), lineage);
  }

  /** Returns the lineage that a companion has for what was shown of a value, and how they match. */
  public static Map.Entry<Lineage, String> found(
      String shown, @Nullable String value, @Nullable String companion) {
    Companion.Shown seen =
        switch (shown) {
          case "part" -> Companion.Shown.PART;
          case "nothing" -> Companion.Shown.NOTHING;
          default -> Companion.Shown.WHOLE;
        };
    Companion.Stored stored = Companion.unpack(bytes(value), seen, bytes(companion), "posts");
    return Map.entry(stored.lineage(), stored.match().name().toLowerCase(Locale.ROOT));
  }

  private static byte @Nullable [] bytes(@Nullable String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }
}
