package io.antipode.propagation;

import io.antipode.PeerAnswers;
import io.antipode.Settings;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.LineageText;
import io.antipode.request.Scope;
import io.antipode.runtime.Counts;
import io.antipode.runtime.EgressHosts;
import io.antipode.runtime.PeerNames;
import io.opentelemetry.api.baggage.Baggage;
import io.opentelemetry.context.Context;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * A call in the scope that it began in, into which alone its answer is merged. It ends as {@link
 * #answered}, as {@link #failed}, or neither where it was never sent.
 */
public final class OutgoingCall {
  private static final int MOST_PEERS = 10_000;
  private static final String NOTHING = Lineage.empty().serialize();

  /** Of each peer whether it ever answered with a lineage; one without an answer is missing. */
  private static final Map<String, Boolean> ANSWERS = new ConcurrentHashMap<>();

  private final Target target;
  private final boolean allowed;
  private final PeerAnswers expected;
  private final String peer;
  private final @Nullable Scope scope;
  private final @Nullable String text;

  /**
   * Who is called.
   *
   * @param service its name, the subject of marks
   * @param host a name or an address, for {@code egress_hosts} and {@code peers}
   * @param port where it listens; -1 where that is not known
   * @param origin by what it is remembered how it answers
   * @param path what is called there, for {@code peers}
   */
  public record Target(String service, String host, int port, String origin, String path) {}

  private OutgoingCall(Target target, Context context) {
    Settings settings = Settings.current();
    Set<String> hosts = settings.egressHosts();
    PeerNames.Found<PeerAnswers> stated =
        settings.peers().isEmpty()
            ? null
            : PeerNames.find(settings.peers(), target.host, target.port, target.path);
    this.target = target;
    allowed = hosts == null || EgressHosts.name(hosts, target.host, target.port);
    expected = stated == null ? PeerAnswers.AUTO : stated.value();
    peer = stated == null ? target.origin : target.origin + stated.path();
    scope = allowed ? Scope.fromContextOrNull(context) : null;
    text = scope != null && carries(context) ? scope.text() : null;
  }

  /** Begins a call in the current context. */
  public static OutgoingCall begin(Target target) {
    return begin(target, Context.current());
  }

  /** Begins a call in a context. */
  public static OutgoingCall begin(Target target, Context context) {
    return new OutgoingCall(Objects.requireNonNull(target, "target"), context);
  }

  /** Whether the application still sends the member: it may have cleared the baggage. */
  private static boolean carries(Context context) {
    return Baggage.fromContext(context).getEntryValue(Scope.MEMBER) != null;
  }

  /** Returns whether the host may get lineages, and its answers count. */
  public boolean isAllowed() {
    return allowed;
  }

  /** Returns the lineage that the call carries; null where it carries none. */
  public @Nullable String text() {
    return text;
  }

  /** Returns the scope into which its answer is merged; null without one. */
  public @Nullable Scope scope() {
    return scope;
  }

  /**
   * Returns the baggage header to send in place of one; empty for none, null for no change.
   *
   * <p>A member of ours that is there already came from an instrumentation just now, or from
   * headers that are handed on: both lineages are sent.
   */
  public @Nullable String baggage(@Nullable String header) {
    if (!allowed) {
      return Headers.hasMember(header)
          ? Headers.withoutMember(Objects.requireNonNull(header))
          : null;
    }
    String sent = text;
    if (sent == null) {
      return null;
    }
    List<String> there = header == null ? List.of() : Headers.members(List.of(header));
    if (there.equals(List.of(sent))) {
      return null;
    }
    return Headers.withMember(header, together(Objects.requireNonNull(scope), sent, there));
  }

  /**
   * Returns the lineage of a scope and those of texts as one text, which is shortened as a whole.
   *
   * @param text the scope's own text, as it has just been written
   * @param there texts of which anyone may be the author
   */
  static String together(Scope scope, String text, List<String> there) {
    List<String> others = there.stream().filter(each -> !each.equals(text)).toList();
    return others.isEmpty() ? text : scope.textWith(readable(others));
  }

  /** Returns the lineages of texts, of which anyone may be the author, as one text. */
  public static String together(List<String> there) {
    return LineageText.leaving(Lineage.empty().merge(readable(there)));
  }

  private static Lineage[] readable(List<String> texts) {
    return texts.stream()
        .map(each -> LineageText.readable(Headers.BAGGAGE, each))
        .toArray(Lineage[]::new);
  }

  /**
   * Returns the context in which to send, so that whoever injects within it sends what is sent
   * here: the complete baggage with the lineage of now, or without it where the host may not get
   * it.
   */
  public Context sendingIn(Context context) {
    Baggage baggage = Baggage.fromContext(context);
    if (!allowed) {
      return baggage.getEntryValue(Scope.MEMBER) == null
          ? context
          : baggage.toBuilder().remove(Scope.MEMBER).build().storeInContext(context);
    }
    return text == null
        ? context
        : baggage.toBuilder().put(Scope.MEMBER, text).build().storeInContext(context);
  }

  /**
   * Says that the service answered.
   *
   * @param lineage the text that came back; null for none
   * @param success whether the call succeeded: only then an answer without a lineage says that the
   *     peer takes no part, for a gateway before it may have given the others
   */
  public void answered(@Nullable String lineage, boolean success) {
    if (!allowed || (lineage == null && text == null)) {
      return;
    }
    if (lineage == null) {
      if (takesPart() == PeerAnswers.ALWAYS) {
        mark(
            "'"
                + target.service
                + "' answered without a lineage, although it sends them: the lineage is"
                + " incomplete. Where something stands at the same address that never sends one,"
                + " name its path in the setting peers: host/path=never");
      } else if (success) {
        note(false);
      }
      return;
    }
    note(true);
    if (!lineage.equals(NOTHING)) {
      merge(lineage);
    }
  }

  private void merge(String lineage) {
    Scope held = scope;
    if (held == null) {
      Counts.count("unscoped_response", target.service);
    } else if (held.isOpen()) {
      held.merge(LineageText.readable(target.service, lineage));
    } else {
      Counts.count("late_response", target.service);
    }
  }

  /** Says that the call was sent, and that what became of it is not known. */
  public void failed() {
    if (takesPart() != PeerAnswers.NEVER) {
      mark(
          "the outcome of a call of '"
              + target.service
              + "' is not known: the lineage is incomplete");
    }
  }

  /** Whether the peer answers with lineages; {@code AUTO} where that is not known yet. */
  private PeerAnswers takesPart() {
    if (expected != PeerAnswers.AUTO) {
      return expected;
    }
    Boolean known = ANSWERS.get(peer);
    return known == null ? PeerAnswers.AUTO : known ? PeerAnswers.ALWAYS : PeerAnswers.NEVER;
  }

  private void mark(String message) {
    Scope held = scope;
    if (held != null) {
      Counts.count("incomplete", target.service);
      held.markIncomplete(target.service, "in_doubt");
      Counts.logOnce("call_in_doubt", target.service, message, () -> message);
    }
  }

  /** Remembers how the peer answers; one answer with a lineage outweighs all without. */
  private void note(boolean speaks) {
    if (ANSWERS.size() >= MOST_PEERS) {
      ANSWERS.clear(); // Known peers are soon known again.
    }
    ANSWERS.merge(peer, speaks, Boolean::logicalOr);
  }

  /** Says that the call goes on while its caller does: what is sent meanwhile says that it runs. */
  public void began() {
    if (scope != null) {
      scope.began();
    }
  }

  /** Says that it does so no longer. */
  public void finished() {
    if (scope != null) {
      scope.finished();
    }
  }

  /** Forgets how peers answer. For tests. */
  public static void forgetPeers() {
    ANSWERS.clear();
  }
}
