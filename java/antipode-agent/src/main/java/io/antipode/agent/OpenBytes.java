package io.antipode.agent;

import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.Promise;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/** A shim whose values are bytes. */
abstract class OpenBytes implements OpenShim {
  static final Executor READING = Executors.newCachedThreadPool();

  abstract Lineage put(String key, byte[] value, Lineage lineage, @Nullable Promise fulfils)
      throws Exception;

  abstract Lineage remove(String key, Lineage lineage) throws Exception;

  static byte[] bytes(String value) {
    return value.getBytes(StandardCharsets.UTF_8);
  }

  static @Nullable String text(byte @Nullable [] value) {
    return value == null ? null : new String(value, StandardCharsets.UTF_8);
  }

  static Found found(byte @Nullable [] value, @Nullable Lineage lineage) {
    return new Found(text(value), lineage);
  }

  private static Lineage orCurrent(@Nullable Lineage lineage) {
    return lineage == null ? Antipode.current() : lineage;
  }

  @Override
  public final Lineage write(
      String key, String value, @Nullable Lineage lineage, @Nullable Promise fulfils)
      throws Exception {
    return put(key, bytes(value), orCurrent(lineage), fulfils);
  }

  @Override
  public final Lineage delete(String key, @Nullable Lineage lineage) throws Exception {
    return remove(key, orCurrent(lineage));
  }
}
