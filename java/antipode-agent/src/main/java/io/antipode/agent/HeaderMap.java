package io.antipode.agent;

import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads headers from a map of names to their values. */
enum HeaderMap implements TextMapGetter<Map<String, List<String>>> {
  /** The one there is. */
  GETTER;

  @Override
  public Iterable<String> keys(Map<String, List<String>> headers) {
    return headers.keySet();
  }

  @Override
  public @Nullable String get(@Nullable Map<String, List<String>> headers, String name) {
    Iterator<String> all = getAll(headers, name);
    return all.hasNext() ? all.next() : null;
  }

  @Override
  public Iterator<String> getAll(@Nullable Map<String, List<String>> headers, String name) {
    return (headers == null ? List.<String>of() : headers.getOrDefault(name, List.of())).iterator();
  }
}
