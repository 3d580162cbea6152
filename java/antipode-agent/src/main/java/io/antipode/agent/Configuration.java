package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.Mode;
import io.antipode.OnStale;
import io.antipode.PeerAnswers;
import io.antipode.Policy;
import io.antipode.ReadBarriers;
import io.antipode.Settings;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Settings in the form of the agent's requests. */
final class Configuration {
  private Configuration() {}

  static Duration duration(double seconds) {
    return Duration.ofNanos(Math.round(seconds * 1e9));
  }

  /** Changes the settings of this process, and returns them as they were. */
  static JsonNode configure(JsonNode given) {
    return json(Settings.configure(settings -> changed(settings, given)));
  }

  /** Returns settings with what is given. */
  static Settings changed(Settings settings, JsonNode given) {
    Settings changed = settings;
    for (Map.Entry<String, JsonNode> each : given.properties()) {
      changed = changed(changed, each.getKey(), each.getValue());
    }
    return changed;
  }

  private static Settings changed(Settings settings, String name, JsonNode value) {
    return switch (name) {
      case "mode" -> settings.withMode(word(Mode.class, value));
      case "region" -> settings.withRegion(value.isNull() ? null : value.asText());
      case "dry_run_dir" -> settings.withDryRunDir(value.isNull() ? null : Path.of(value.asText()));
      case "max_timeout", "max_timeout_s" -> settings.withMaxTimeout(duration(value.asDouble()));
      case "max_lineage_bytes" -> settings.withMaxLineageBytes(value.asInt());
      case "horizon_s" -> settings.withHorizon(duration(value.asDouble()));
      case "max_promise_s" -> settings.withMaxPromise(duration(value.asDouble()));
      case "on_unknown" -> settings.withOnUnknown(policy(value));
      case "on_incomplete" -> settings.withOnIncomplete(word(Policy.class, value));
      case "barriers" -> settings.withBarriers(word(ReadBarriers.class, value));
      case "auto_timeout_s" -> settings.withAutoTimeout(duration(value.asDouble()));
      case "session_max_age_s" -> settings.withSessionMaxAge(duration(value.asDouble()));
      case "on_stale" -> settings.withOnStale(word(OnStale.class, value));
      case "on_unscoped" -> settings.withOnUnscoped(policy(value));
      case "egress" -> settings.withEgress(names(value));
      case "egress_hosts" -> settings.withEgressHosts(names(value));
      case "peers" -> settings.withPeers(peers(value));
      case "app_packages" -> settings.withAppPackages(names(value));
      default -> throw AgentException.senseless("no setting " + name);
    };
  }

  private static @Nullable Policy policy(JsonNode value) {
    return value.isNull() ? null : word(Policy.class, value);
  }

  private static <E extends Enum<E>> E word(Class<E> type, JsonNode value) {
    return Enum.valueOf(type, value.asText().toUpperCase(Locale.ROOT).replace('-', '_'));
  }

  private static @Nullable List<String> names(JsonNode value) {
    return value.isNull() ? null : Values.texts(value);
  }

  private static Map<String, PeerAnswers> peers(JsonNode value) {
    Map<String, PeerAnswers> peers = new LinkedHashMap<>();
    value
        .properties()
        .forEach(each -> peers.put(each.getKey(), word(PeerAnswers.class, each.getValue())));
    return peers;
  }

  private static ObjectNode json(Settings settings) {
    ObjectNode value = JsonNodeFactory.instance.objectNode();
    value.put("mode", spelled(settings.mode())).put("region", settings.region());
    @Nullable Path directory = settings.dryRunDir();
    value.put("dry_run_dir", directory == null ? null : directory.toString());
    value.put("max_timeout_s", seconds(settings.maxTimeout()));
    value.put("max_lineage_bytes", settings.maxLineageBytes());
    value.put("horizon_s", seconds(settings.horizon()));
    value.put("max_promise_s", seconds(settings.maxPromise()));
    value.put("on_unknown", spelled(settings.onUnknown()));
    value.put("on_incomplete", spelled(settings.onIncomplete()));
    value.put("barriers", spelled(settings.barriers()));
    value.put("auto_timeout_s", seconds(settings.autoTimeout()));
    value.put("session_max_age_s", seconds(settings.sessionMaxAge()));
    value.put("on_stale", spelled(settings.onStale()));
    value.put("on_unscoped", spelled(settings.onUnscoped()));
    put(value, "egress", settings.egress());
    put(value, "egress_hosts", settings.egressHosts());
    ObjectNode peers = value.putObject("peers");
    settings.peers().forEach((peer, answers) -> peers.put(peer, spelled(answers)));
    put(value, "app_packages", settings.appPackages());
    return value;
  }

  private static void put(ObjectNode value, String name, @Nullable Collection<String> names) {
    if (names == null) {
      value.putNull(name);
    } else {
      names.stream().sorted().forEach(value.putArray(name)::add);
    }
  }

  private static double seconds(Duration duration) {
    return duration.toNanos() / 1e9;
  }

  private static @Nullable String spelled(@Nullable Enum<?> value) {
    return value == null ? null : value.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
