package io.antipode.s3;

/**
 * One version of an object, in a bucket of the region that is asked.
 *
 * @param bucket its name
 * @param key of the object
 * @param number its {@code VersionId}, or that of a delete marker
 */
record Version(String bucket, String key, String number) {}
