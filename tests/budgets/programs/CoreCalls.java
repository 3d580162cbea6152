import io.antipode.Antipode;
import io.antipode.lineage.Lineage;
import io.antipode.lineage.WriteId;

/** What a request begins with. */
final class CoreCalls {
  private CoreCalls() {}

  static void count() throws Exception {
    Lineage three = Lineage.of(write("a"), write("b"), write("c"));
    String text = three.serialize();
    Counting.core("scope: empty", () -> Antipode.scope().close());
    Counting.core("scope: 3 entries", () -> Antipode.scope(three).close());
    Counting.core("scope: text of 3 entries", () -> Antipode.scope(text).close());
    Counting.core("decode: 3 entries", () -> Lineage.deserialize(text));
  }

  private static WriteId write(String name) {
    return WriteId.of(name, "log-" + name, 7).writtenAt(490_000);
  }
}
