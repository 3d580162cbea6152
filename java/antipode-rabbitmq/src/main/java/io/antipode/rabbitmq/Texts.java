package io.antipode.rabbitmq;

import com.rabbitmq.client.LongString;
import io.antipode.messages.MessageHeaders;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Headers as the library reads them: the client has a type of its own for received texts. */
final class Texts {
  private Texts() {}

  /** Returns headers whose texts of this library's are strings. */
  static @Nullable Map<String, Object> of(@Nullable Map<String, Object> headers) {
    if (headers == null) {
      return null;
    }
    Map<String, Object> read = headers;
    for (String name : MessageHeaders.NAMES) {
      if (headers.get(name) instanceof LongString text) {
        read = read == headers ? new HashMap<>(headers) : read;
        read.put(name, text.toString());
      }
    }
    return read;
  }

  /** Returns a header as text; null for a type that no propagator writes. */
  static @Nullable String text(@Nullable Object header) {
    return header instanceof LongString text ? text.toString() : MessageHeaders.text(header);
  }
}
