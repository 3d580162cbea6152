package io.antipode.spring;

import io.antipode.Settings;
import io.antipode.barrier.LastPoll;
import io.antipode.barrier.Shim;
import io.antipode.barrier.Shims;
import io.antipode.runtime.KillSwitch;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.springframework.boot.actuate.health.AbstractHealthIndicator;
import org.springframework.boot.actuate.health.Health;

/**
 * Says which datastores barriers wait at, and how the last poll of each server ended. It asks no
 * server. It is never down: what failed at the last poll may be there again, and a service without
 * requests would never poll again; it says that this is unknown.
 */
public final class AntipodeHealthIndicator extends AbstractHealthIndicator {
  /** Makes the indicator. */
  public AntipodeHealthIndicator() {
    super("the registered datastores cannot be known");
  }

  @Override
  protected void doHealthCheck(Health.Builder builder) {
    if (KillSwitch.isDisabled()) {
      builder.unknown().withDetail("mode", "disabled");
      return;
    }
    builder.up().withDetail("mode", word(Settings.current().mode()));
    Map<String, List<Map<String, Object>>> datastores = new LinkedHashMap<>();
    for (String datastore : Shims.datastores()) {
      List<Shim> shims = Shims.of(datastore);
      datastores.put(datastore, shims.stream().map(AntipodeHealthIndicator::described).toList());
      if (shims.stream().anyMatch(AntipodeHealthIndicator::isAway)) {
        builder.unknown();
      }
    }
    builder.withDetail("datastores", datastores);
  }

  private static boolean isAway(Shim shim) {
    LastPoll look = shim.lastPoll();
    return look != null && !look.failure().isEmpty();
  }

  private static Map<String, Object> described(Shim shim) {
    Map<String, Object> details = new LinkedHashMap<>();
    details.put("readsFrom", word(shim.readsFrom()));
    details.put("waitable", shim.isWaitable());
    details.put("holdsReads", shim.holdsReads());
    LastPoll look = shim.lastPoll();
    details.put("lastPoll", look == null ? "none" : look.failure().isEmpty() ? "ok" : "failed");
    if (look != null) {
      details.put("lastLookAt", look.at().toString());
    }
    if (look != null && !look.failure().isEmpty()) {
      details.put("failure", look.failure());
    }
    return details;
  }

  private static String word(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
