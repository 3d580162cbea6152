package io.antipode.sns;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;

/** The checksum of a message's attributes, as SQS makes it and the SDK compares it. */
final class Checksum {
  private static final byte TEXT = 1;
  private static final byte BYTES = 2;

  private Checksum() {}

  /**
   * Returns the checksum of a part of the attributes that a message came with.
   *
   * @param given of all; one that is wrong stays, so that the SDK finds it
   */
  static @Nullable String of(
      Map<String, MessageAttributeValue> part,
      Map<String, MessageAttributeValue> all,
      @Nullable String given) {
    if (given == null || !given.equals(of(all))) {
      return given;
    }
    return part.isEmpty() ? null : of(part);
  }

  private static String of(Map<String, MessageAttributeValue> attributes) {
    MessageDigest digest;
    try {
      digest = MessageDigest.getInstance("MD5");
    } catch (NoSuchAlgorithmException impossible) { // Every Java has it.
      throw new IllegalStateException(impossible);
    }
    new TreeMap<>(attributes)
        .forEach(
            (name, value) -> {
              add(digest, name.getBytes(StandardCharsets.UTF_8));
              add(digest, value.dataType().getBytes(StandardCharsets.UTF_8));
              @Nullable String text = value.stringValue();
              @Nullable SdkBytes bytes = value.binaryValue();
              if (text != null) {
                digest.update(TEXT);
                add(digest, text.getBytes(StandardCharsets.UTF_8));
              } else if (bytes != null) {
                digest.update(BYTES);
                add(digest, bytes.asByteArray());
              }
            });
    return HexFormat.of().formatHex(digest.digest());
  }

  /** Adds bytes, with their length before them. */
  private static void add(MessageDigest digest, byte[] bytes) {
    digest.update(ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).array());
    digest.update(bytes);
  }
}
