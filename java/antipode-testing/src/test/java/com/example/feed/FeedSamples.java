package com.example.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.antipode.Antipode;
import io.antipode.Mode;
import io.antipode.Settings;
import io.antipode.barrier.Shims;
import io.antipode.request.ScopeBlock;
import io.antipode.testing.AntipodeDryRun;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

/** Classes of tests as an application has them; {@code DryRunExtensionTest} runs them. */
public final class FeedSamples {
  private FeedSamples() {}

  /** A feed that is registered while a test runs. */
  abstract static class WithFeed {
    final Feed feed = new Feed();

    @BeforeEach
    void register() {
      Shims.register(feed);
    }

    @AfterEach
    void close() {
      feed.close();
    }
  }

  /** A follower is shown a post without a barrier, in two tests. */
  @AntipodeDryRun
  public static class Unguarded extends WithFeed {
    @Test
    void followersAreShownThePost() {
      try (ScopeBlock request = Antipode.scope()) {
        feed.publish();
        feed.show();
      }
    }

    @Test
    void againTheyAre() {
      followersAreShownThePost();
    }
  }

  /** With a barrier. */
  @AntipodeDryRun
  public static class Guarded extends WithFeed {
    @Test
    void followersAreShownThePost() {
      try (ScopeBlock request = Antipode.scope()) {
        feed.publish();
        feed.showGuarded();
      }
    }
  }

  /** What is configured in one test is not in force in the next, and nested classes count. */
  @AntipodeDryRun
  @TestMethodOrder(MethodOrderer.MethodName.class)
  public static class Outer extends WithFeed {
    @Test
    void enforces() {
      Settings.configure(held -> held.withMode(Mode.ENFORCE));
    }

    @Nested
    class Inner {
      @Test
      void isShownThePost() {
        assertThat(Settings.current().mode()).isEqualTo(Mode.DRY_RUN);
        try (ScopeBlock request = Antipode.scope()) {
          feed.publish();
          feed.show();
        }
      }
    }
  }

  /** The finding is known by a file that the test puts there. */
  @AntipodeDryRun(baseline = "target/known-findings.txt")
  public static class Known extends Unguarded {}
}
