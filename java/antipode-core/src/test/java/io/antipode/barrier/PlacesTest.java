package io.antipode.barrier;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** How many connections of a pool reads that wait may keep. */
class PlacesTest {
  /** All reads of one connection keep one place; the last one gives it back. */
  @Test
  void aConnectionKeepsOnePlaceForAllOfItsReads() {
    Places pool = Places.of(() -> 2);
    Places one = pool.ofConnection();
    Places other = pool.ofConnection();
    assertThat(one.take()).isTrue();
    assertThat(one.take()).isTrue();
    assertThat(other.take()).as("half of two").isFalse();
    one.giveBack();
    assertThat(other.take()).isFalse();
    one.giveBack();
    assertThat(other.take()).isTrue();
  }
}
