package io.antipode.barrier;

import java.time.Instant;

/**
 * How the last poll of a server ended.
 *
 * @param at when
 * @param failure why it failed; empty where it did not
 */
public record LastPoll(Instant at, String failure) {}
