package io.antipode.s3;

import io.antipode.lineage.Lineage;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What the objects of uploads in parts will depend on. Thread-safe. */
final class Uploads {
  private static final int MOST_REMEMBERED = 1_000;

  private final Map<String, Lineage> begun =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Lineage> eldest) {
          return size() > MOST_REMEMBERED;
        }
      };

  /** Takes in what was stored at the beginning of an upload. */
  synchronized void begin(String upload, Lineage stored) {
    begun.put(upload, stored);
  }

  /** Returns that, once; nothing of one that began elsewhere. */
  synchronized Lineage complete(@Nullable String upload) {
    @Nullable Lineage stored = begun.remove(upload);
    return stored == null ? Lineage.empty() : stored;
  }
}
