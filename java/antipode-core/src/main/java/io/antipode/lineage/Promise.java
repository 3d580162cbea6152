package io.antipode.lineage;

import java.util.Comparator;
import java.util.Objects;

/**
 * A branch of the request that will still write.
 *
 * @param datastore where it will write
 * @param id 16 random bytes, as 32 lower-case hexadecimal digits
 * @param expiresS the Unix second after which nobody needs to wait for it
 */
public record Promise(String datastore, String id, long expiresS) implements Dependency {
  static final Comparator<Promise> ORDER =
      Comparator.comparing(Promise::datastore).thenComparing(Promise::id);
  static final long MAX_EXPIRES_S = 2_821_109_907_455L;

  /** Checks that it can be put on the wire. */
  public Promise {
    Grammar.requireName(datastore);
    Objects.requireNonNull(id, "id");
    if (id.length() != 32 || !Grammar.isHex(id)) {
      throw new IllegalArgumentException("a promise's id is 32 lower-case hexadecimal digits");
    }
    if (expiresS < 0 || expiresS > MAX_EXPIRES_S) {
      throw new IllegalArgumentException("an expiry is from 0 to " + MAX_EXPIRES_S + " seconds");
    }
  }

  /**
   * What makes a promise the same one, whenever it expires.
   *
   * @param datastore where it will write
   * @param id its id
   */
  public record Name(String datastore, String id) {}

  /** Returns by which it is the same promise in another lineage. */
  public Name name() {
    return new Name(datastore, id);
  }

  /** Returns the text that names this promise to the branch that fulfils it. */
  public String token() {
    return Lineage.builder().promise(this).build().serialize();
  }

  /**
   * Returns the promise of a token.
   *
   * @throws LineageDecodeException if the text is anything but the token of one promise
   */
  public static Promise parse(String token) {
    Lineage held = Lineage.deserialize(token);
    if (held.promises().size() == 1) {
      Promise promise = held.promises().get(0);
      if (promise.token().equals(token)) {
        return promise;
      }
    }
    throw new LineageDecodeException("lineage_item", "not the token of a promise", 0);
  }

  static Promise later(Promise one, Promise other) {
    return other.expiresS > one.expiresS ? other : one;
  }
}
