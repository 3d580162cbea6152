package io.antipode.lineage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ValuesTest {
  private static final String ID = "00112233445566778899aabbccddeeff";

  @Test
  void whatCouldNotBeSentIsRefusedWhenItIsMade() {
    refuses(() -> WriteId.of("", "k", 1));
    refuses(() -> WriteId.of("a", "\ud800", 1));
    refuses(() -> WriteId.ofOpaque("a", "k", "\udc00x"));
    refuses(() -> WriteId.of("a", "k", 1).writtenAt(-1));
    refuses(() -> WriteId.of("a", "k", 1).writtenAt(WriteId.MAX_WRITTEN_HOUR + 1L));
    refuses(() -> new Incomplete("\ud800\ud800", "size"));
    refuses(() -> new Promise("", ID, 1));
    refuses(() -> new Promise("a", ID.toUpperCase(java.util.Locale.ROOT), 1));
    refuses(() -> new Promise("a", ID, -1));
    refuses(() -> new Promise("a", ID, Promise.MAX_EXPIRES_S + 1));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "", "ka.5.k", "hmac", "x~", "x y", "x\u00e9", "z", "z1.2", "z0.1", "z00.2", "z0.2~"
      })
  void itemsThatAreNotOfAnUnknownKindAreRefused(String item) {
    refuses(() -> Lineage.builder().unknown(item));
  }

  private static void refuses(Runnable making) {
    assertThatThrownBy(making::run).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void anOpaqueVersionIsNoNumber() {
    WriteId opaque = WriteId.ofOpaque("a", "k", "5");
    assertThat(opaque).isNotEqualTo(WriteId.of("a", "k", 5));
    assertThat(opaque.opaqueVersion()).isEqualTo("5");
    assertThatThrownBy(opaque::version).isInstanceOf(IllegalStateException.class);
    assertThat(WriteId.of("a", "k", -1)).hasToString("a[k]=18446744073709551615");
  }

  @Test
  void aTokenIsThatOfOnePromise() {
    Promise promise = new Promise("posts", ID, 1_800_000_000);
    assertThat(Promise.parse(promise.token())).isEqualTo(promise);
    Lineage two = Lineage.deserialize(promise.token()).append(new Promise("users", ID, 7));
    for (String text :
        new String[] {"1", two.serialize(), "1apsw" + promise.token().substring(1)}) {
      assertThatThrownBy(() -> Promise.parse(text))
          .isInstanceOfSatisfying(
              LineageDecodeException.class,
              error -> assertThat(error.code()).isEqualTo("lineage_item"));
    }
  }

  @Test
  void aBoundWithoutRoomForAMarkIsRefused() {
    Lineage lineage = Lineage.of(WriteId.of("a", "k", 1)).append(WriteId.of("a", "longer", 1));
    assertThat(lineage.serialize(Bound.ofBytes(18))).isEqualTo("1~isize.-");
    assertThatThrownBy(() -> lineage.serialize(Bound.ofBytes(17)))
        .isInstanceOfSatisfying(
            LineageTooLargeException.class,
            error -> assertThat(error.code()).isEqualTo("lineage_too_large"));
    refuses(() -> Bound.ofBytes(0));
  }

  @ParameterizedTest
  @ValueSource(strings = {"~zzz.2", "~z1ek7.2", "~i", "~x", "~ka.5.k", "~ka.5.-YWJj", "~", "~h"})
  void hostileTextsAreJudgedInLinearTime(String repeated) {
    String text = "1" + repeated.repeat((Decoder.MAX_LENGTH - 1) / repeated.length());
    Assertions.assertTimeout(
        Duration.ofSeconds(2),
        () -> {
          for (int i = 0; i < 10; i++) {
            assertThatThrownBy(() -> Lineage.deserialize(text))
                .isInstanceOf(LineageDecodeException.class);
          }
        });
  }
}
