package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Headers as a map of names to their values, and what reads it. */
enum HeaderMap implements TextMapGetter<Map<String, List<String>>> {
  /** The one there is. */
  GETTER;

  /** Returns the headers of a list of pairs. */
  static Map<String, List<String>> of(JsonNode pairs) {
    Map<String, List<String>> headers = new LinkedHashMap<>();
    for (JsonNode pair : pairs) {
      headers
          .computeIfAbsent(pair.path(0).asText(), name -> new ArrayList<>())
          .add(pair.path(1).asText());
    }
    return headers;
  }

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
