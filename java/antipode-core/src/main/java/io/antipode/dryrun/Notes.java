package io.antipode.dryrun;

import io.antipode.lineage.Dependency;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageDecodeException;
import io.antipode.lineage.Promise;
import io.antipode.lineage.WriteId;
import io.antipode.request.Attachment;
import io.antipode.request.Scope;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What travels for a dry run with the lineage of a request: its id and its guards. Items of kind
 * {@code 0}, which the lineage format reserves for what is no dependency. All branches of a request
 * share it. Thread-safe.
 */
final class Notes implements Attachment<Notes> {
  private static final Key<Notes> KEY = new Key<>(Notes.class);
  private static final Pattern REQUEST = Pattern.compile("0r([0-9a-f]{16})");
  private static final Pattern GUARD = Pattern.compile("0g([A-Za-z0-9_-]+)\\.([urkp].*)");
  private static final int REQUEST_BYTES = 8;

  /** What stands for a process without a region. */
  private static final String NO_REGION = "-";

  /** What one guard covers; versions without an order, and promises, are alone in theirs. */
  private record Log(String region, String datastore, String key, @Nullable String alone) {}

  private final Map<Log, Dependency> guards = new HashMap<>();
  private String request = "";

  private Notes() {}

  /** Returns the notes of a request. */
  static Notes of(Scope scope) {
    Notes held = scope.attachment(KEY);
    if (held != null) {
      return held;
    }
    Notes made = new Notes();
    scope.attach(KEY, made);
    Notes kept = scope.attachment(KEY);
    return kept == null ? made : kept; // A scope that was stopped keeps nothing.
  }

  @Override
  public Notes joined(Notes later) {
    if (later != this) {
      take(later.items(null));
    }
    return this;
  }

  @Override
  public Notes branched(Set<String> own) {
    return this;
  }

  @Override
  public boolean isForSharedWork() {
    return false; // They come with the lineage, and stay apart.
  }

  /** Returns the request's id; drawn now, where none came with it. */
  synchronized String request() {
    if (request.isEmpty()) {
      request = Records.hex(REQUEST_BYTES);
    }
    return request;
  }

  /** Merges the notes among some items; those that are malformed say nothing. */
  synchronized void take(Collection<String> items) {
    String came =
        items.stream()
            .map(REQUEST::matcher)
            .filter(Matcher::matches)
            .map(match -> match.group(1))
            .min(String::compareTo)
            .orElse("");
    if (request.isEmpty()) {
      request = came;
    }
    for (String item : items) {
      Matcher match = GUARD.matcher(item);
      if (match.matches()) {
        @Nullable String region = region(match.group(1));
        @Nullable Dependency guarded = guarded(match.group(2));
        if (region != null && guarded != null) {
          guard(region, guarded);
        }
      }
    }
  }

  /** Notes that a barrier in a region waits, or would have waited, for something. */
  synchronized void guard(String region, Dependency guarded) {
    guards.merge(
        log(region, guarded),
        plain(guarded),
        (held, other) -> Long.compareUnsigned(number(held), number(other)) < 0 ? other : held);
  }

  /** Returns whether a guard of a region covers something. */
  synchronized boolean covers(String region, Dependency wanted) {
    Dependency held = guards.get(log(region, wanted));
    return held != null && Long.compareUnsigned(number(held), number(wanted)) >= 0;
  }

  /** Returns what travels; of some datastores alone, which may be named, or of all. */
  synchronized List<String> items(@Nullable Collection<String> egress) {
    List<String> items = new ArrayList<>(List.of("0r" + request()));
    guards.forEach(
        (log, guarded) -> {
          if (egress == null || egress.contains(guarded.datastore())) {
            items.add("0g" + token(log.region) + "." + item(guarded));
          }
        });
    return items;
  }

  private static Log log(String region, Dependency found) {
    if (found instanceof WriteId write) {
      return new Log(region, write.datastore(), write.key(), write.opaqueVersion());
    }
    return new Log(region, found.datastore(), "", ((Promise) found).id());
  }

  private static long number(Dependency found) {
    return found instanceof WriteId write && write.opaqueVersion() == null ? write.version() : 0;
  }

  /** A guard states no hour. */
  private static Dependency plain(Dependency guarded) {
    if (!(guarded instanceof WriteId write)) {
      return guarded;
    }
    String opaque = write.opaqueVersion();
    return opaque == null
        ? WriteId.of(write.datastore(), write.key(), write.version())
        : WriteId.ofOpaque(write.datastore(), write.key(), opaque);
  }

  private static String item(Dependency guarded) {
    Lineage alone =
        guarded instanceof WriteId write
            ? Lineage.of(write)
            : Lineage.empty().append((Promise) guarded);
    String text = alone.serialize();
    return text.substring(text.indexOf('~') + 1);
  }

  private static @Nullable Dependency guarded(String item) {
    try {
      Lineage lineage = Lineage.deserialize("1~" + item);
      List<Dependency> found =
          Stream.<Dependency>concat(lineage.writes().stream(), lineage.promises().stream())
              .toList();
      return found.size() == 1 ? found.get(0) : null;
    } catch (LineageDecodeException malformed) {
      return null;
    }
  }

  private static String token(String region) {
    return region.isEmpty()
        ? NO_REGION
        : Base64.getUrlEncoder()
            .withoutPadding()
            .encodeToString(region.getBytes(StandardCharsets.UTF_8));
  }

  /** Returns the region that a token stands for, empty for none; null where it is malformed. */
  private static @Nullable String region(String token) {
    if (token.equals(NO_REGION)) {
      return "";
    }
    try {
      byte[] packed = Base64.getUrlDecoder().decode(token);
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(packed)).toString();
    } catch (IllegalArgumentException | CharacterCodingException malformed) {
      return null;
    }
  }
}
