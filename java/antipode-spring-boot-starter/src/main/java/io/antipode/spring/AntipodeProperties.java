package io.antipode.spring;

import io.antipode.PeerAnswers;
import io.antipode.Settings;
import io.antipode.session.SessionCookie;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The settings of the library. What is not given stays as it is. Durations are as Spring Boot
 * spells them, {@code 500ms}, {@code 2s}, {@code 7d} or {@code PT2S}; a bare number, {@code 2.5},
 * is seconds.
 *
 * @param mode what barriers do: enforce, dry-run or off
 * @param region the name of this region, for people and reports
 * @param dryRunDir where a dry run writes its records; none by default
 * @param maxTimeout the longest any barrier waits, whatever its caller says; default 30
 * @param maxLineageBytes how many bytes of baggage the lineage may have, from 64 to 4096
 * @param horizon after how long a dependency on an unknown log counts as aged; default 7d
 * @param maxPromise the longest that a promise may live; default 7d
 * @param onUnknown what a barrier does about what it cannot decide: raise or report
 * @param onIncomplete what a barrier does about an incomplete lineage: raise or report
 * @param barriers where reads wait: explicit, or auto for everywhere
 * @param autoTimeout for how long automatic barriers may hold the reads of a request back; default
 *     1
 * @param sessionMaxAge for how long a session cookie carries what a request wrote; default 60
 * @param session the session cookie; without keys there is none
 * @param onStale what such a read does whose time is up: serve, raise or primary
 * @param onUnscoped what happens without a scope: raise or report
 * @param egress the datastores that may be named outside of this process; all by default
 * @param egressHosts the hosts to which clients send lineages; all by default
 * @param peers by host and path, whether those who are called answer with lineages
 * @param appPackages the application's packages, whose lines logs name
 */
@ConfigurationProperties("antipode")
public record AntipodeProperties(
    @Nullable String mode,
    @Nullable String region,
    @Nullable String dryRunDir,
    @Nullable String maxTimeout,
    @Nullable String maxLineageBytes,
    @Nullable String horizon,
    @Nullable String maxPromise,
    @Nullable String onUnknown,
    @Nullable String onIncomplete,
    @Nullable String barriers,
    @Nullable String autoTimeout,
    @Nullable String sessionMaxAge,
    @Nullable Session session,
    @Nullable String onStale,
    @Nullable String onUnscoped,
    @Nullable Set<String> egress,
    @Nullable Set<String> egressHosts,
    @Nullable Map<String, PeerAnswers> peers,
    @Nullable Set<String> appPackages) {

  /**
   * The signed cookie that carries what a request wrote to the next requests of its user.
   *
   * @param keys secrets that all servers of this service share; the first signs
   * @param cookie its name; default antipode
   * @param path below which browsers send it; default /
   * @param domain to whose subdomains they send it, too; by default to this host alone
   * @param secure whether over TLS alone; by default where the request came over TLS
   */
  public record Session(
      List<String> keys,
      @Nullable String cookie,
      @Nullable String path,
      @Nullable String domain,
      @Nullable Boolean secure) {
    SessionCookie made() {
      SessionCookie made =
          SessionCookie.signedBy(keys).within(path == null ? "/" : path, domain).withSecure(secure);
      return cookie == null ? made : made.withName(cookie);
    }
  }

  /** Returns settings with what is given. */
  Settings applied(Settings settings) {
    Settings changed = settings;
    changed = with(changed, "mode", mode);
    changed = with(changed, "region", region);
    changed = with(changed, "dry_run_dir", dryRunDir);
    changed = withDuration(changed, "max_timeout", maxTimeout);
    changed = with(changed, "max_lineage_bytes", maxLineageBytes);
    changed = withDuration(changed, "horizon", horizon);
    changed = withDuration(changed, "max_promise", maxPromise);
    changed = with(changed, "on_unknown", onUnknown);
    changed = with(changed, "on_incomplete", onIncomplete);
    changed = with(changed, "barriers", barriers);
    changed = withDuration(changed, "auto_timeout", autoTimeout);
    changed = withDuration(changed, "session_max_age", sessionMaxAge);
    changed = with(changed, "on_stale", onStale);
    changed = with(changed, "on_unscoped", onUnscoped);
    changed = egress == null ? changed : changed.withEgress(egress);
    changed = egressHosts == null ? changed : changed.withEgressHosts(egressHosts);
    changed = peers == null ? changed : changed.withPeers(peers);
    return appPackages == null ? changed : changed.withAppPackages(appPackages);
  }

  private static Settings withDuration(Settings settings, String name, @Nullable String text) {
    return with(settings, name, text == null ? null : Durations.setting(text));
  }

  private static Settings with(Settings settings, String name, @Nullable String text) {
    return text == null || text.isBlank() ? settings : settings.with(name, text);
  }
}
