package io.antipode.s3;

import io.antipode.barrier.Status;
import org.jspecify.annotations.Nullable;

/**
 * What a bucket has of a version.
 *
 * @param isPresent whether it is there, an object or a delete marker; of a copy, whether a read
 *     that names no version shows it or a newer one
 * @param replication its status at its source, as S3 names it; empty without one
 * @param newest the newest version of the key, where it was asked for; empty where there is none
 */
record Shown(boolean isPresent, String replication, String newest) {
  static final String FAILED = "FAILED";

  static final Shown ABSENT = new Shown(false, "", "");

  /**
   * Returns what a bucket that has this shows of a write.
   *
   * @param asked what the bucket that took the write has; null where it was not asked, or was away
   * @param isAtHome whether they are one bucket
   */
  Status judge(@Nullable Shown asked, boolean isAtHome) {
    if (isPresent) {
      return Status.VISIBLE;
    }
    @Nullable Shown home = isAtHome ? this : asked;
    if (home == null || home.isPresent) {
      return home != null && home.replication.equals(FAILED) ? Status.LOST : Status.NOT_YET;
    }
    if (home.newest.isEmpty()) {
      return Status.LOST;
    }
    return newest.equals(home.newest) ? Status.SUPERSEDED : Status.NOT_YET;
  }
}
