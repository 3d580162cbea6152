package io.antipode.dynamodb;

import org.jspecify.annotations.Nullable;

/**
 * What a region has of an item.
 *
 * @param isPresent whether it is there
 * @param stamp of who wrote it; null without one
 * @param digest of the whole item, where it has no stamp and was read whole; else empty
 * @param writes of a promise's record, the text of what its transaction wrote; else empty
 */
record Shown(boolean isPresent, @Nullable Long stamp, String digest, String writes) {
  static final Shown ABSENT = new Shown(false, null, "", "");

  /** Returns whether it is what the write of a version made of the item. */
  boolean isOf(long version) {
    return Stamps.isDeletion(version) ? !isPresent : stamp != null && stamp == version;
  }

  /** Returns whether another region surely has the same. */
  boolean isSame(Shown other) {
    return equals(other) && (stamp != null || !digest.isEmpty() || !isPresent);
  }
}
