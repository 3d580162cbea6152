package io.antipode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SettingsTest {
  private static Settings read(Map<String, String> properties, Map<String, String> environment) {
    return Settings.read(properties::get, environment::get);
  }

  @Test
  void propertiesPrecedeTheEnvironment() {
    Settings settings =
        read(
            Map.of("antipode.max-timeout", "2.5"),
            Map.of("ANTIPODE_MAX_TIMEOUT", "7", "ANTIPODE_HORIZON", "12h"));
    assertThat(settings.maxTimeout()).isEqualTo(Duration.ofMillis(2_500));
    assertThat(settings.horizon()).isEqualTo(Duration.ofHours(12));
    assertThat(settings.maxPromise()).isEqualTo(Duration.ofDays(7));
    assertThat(settings.autoTimeout()).isEqualTo(Duration.ofSeconds(1));
  }

  @Test
  void wordsNamesAndPeersAreRead() {
    Settings settings =
        read(
            Map.of(
                "antipode.mode", "dry-run",
                "antipode.on-unscoped", "raise",
                "antipode.barriers", "auto",
                "antipode.on-stale", "raise",
                "antipode.egress", " posts, users,",
                "antipode.egress-hosts", "*.internal,[::1]:8080",
                "antipode.peers", "orders.internal/v1=always,other=never"),
            Map.of());
    assertThat(settings.mode()).isEqualTo(Mode.DRY_RUN);
    assertThat(settings.onUnscoped()).isEqualTo(Policy.RAISE);
    assertThat(settings.barriers()).isEqualTo(ReadBarriers.AUTO);
    assertThat(settings.onStale()).isEqualTo(OnStale.RAISE);
    assertThat(settings.egress()).isEqualTo(Set.of("posts", "users"));
    assertThat(settings.egressHosts()).isEqualTo(Set.of("*.internal", "[::1]:8080"));
    assertThat(settings.peers())
        .isEqualTo(Map.of("orders.internal/v1", PeerAnswers.ALWAYS, "other", PeerAnswers.NEVER));
  }

  @Test
  void aWrongValueNamesItsSettingAndItsSources() {
    assertThatThrownBy(() -> read(Map.of(), Map.of("ANTIPODE_MAX_LINEAGE_BYTES", "63")))
        .isInstanceOf(ConfigurationException.class)
        .hasMessageContaining("max_lineage_bytes must be a number of bytes from 64 to 4096, not 63")
        .hasMessageContaining("ANTIPODE_MAX_LINEAGE_BYTES");
    for (Map<String, String> wrong :
        Set.of(
            Map.of("antipode.max-timeout", "0"),
            Map.of("antipode.max-timeout", "soon"),
            Map.of("antipode.mode", "on"),
            Map.of("antipode.barriers", "off"),
            Map.of("antipode.auto-timeout", "-1"),
            Map.of("antipode.max-lineage-bytes", "many"),
            Map.of("antipode.egress-hosts", "http://host"),
            Map.of("antipode.peers", "host"),
            Map.of("antipode.peers", "host=perhaps"))) {
      assertThatThrownBy(() -> read(wrong, Map.of()))
          .as("%s", wrong)
          .isInstanceOf(ConfigurationException.class);
    }
  }

  @Test
  void configureChangesOnlyWhatItNames() {
    Settings before = Settings.configure(settings -> settings.withRegion("eu"));
    try {
      assertThat(Settings.current().region()).isEqualTo("eu");
      assertThat(Settings.current().maxTimeout()).isEqualTo(before.maxTimeout());
      assertThatThrownBy(() -> Settings.configure(settings -> settings.withMaxLineageBytes(1)))
          .isInstanceOf(ConfigurationException.class);
      assertThat(Settings.current().region()).isEqualTo("eu");
    } finally {
      Settings.configure(settings -> before);
    }
  }
}
