package io.antipode.session;

import org.jspecify.annotations.Nullable;

/** Signs a cookie's content with one key, and knows what several signed. */
interface Signer {
  /** Returns a content with its signature. */
  String sign(String content);

  /** Returns the content of a value; null where no key has signed it. */
  @Nullable String unsign(String value);
}
