package io.antipode.agent;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.antipode.lineage.WriteId;
import io.antipode.mongodb.MongoDecisions;
import io.antipode.mongodb.MongoDecisions.Named;
import io.antipode.mongodb.MongoDecisions.Place;
import io.antipode.mongodb.MongoDecisions.Polled;
import io.antipode.mongodb.MongoDecisions.Server;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What the shim of MongoDB decides without its server, in the form of the vectors. */
final class MongoVectors {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private MongoVectors() {}

  static JsonNode decide(String kind, JsonNode given) {
    return switch (kind) {
      case "look_at" -> poll(given);
      case "position" -> position(given);
      case "command" ->
          JSON.objectNode()
              .put("does", MongoDecisions.kind(Values.argument(given, "command").toString()));
      case "found" -> found(given);
      default -> throw AgentException.unsupported("decisions about a " + kind + " of mongodb");
    };
  }

  private static long version(JsonNode holder, String name) {
    return Long.parseUnsignedLong(Values.text(holder, name));
  }

  private static Place place(JsonNode place) {
    return new Place(place.path("term").asLong(), version(place, "version"));
  }

  private static Polled polled(JsonNode server) {
    Server state =
        new Server(
            Values.text(server, "set"),
            place(server.path("applied")),
            place(server.path("committed")),
            false,
            server.path("initiated_s").asLong(),
            0);
    List<Place> oplog = new ArrayList<>();
    server.path("oplog").forEach(entry -> oplog.add(place(entry)));
    return new Polled(state, server.path("majority").asBoolean(), oplog);
  }

  private static ObjectNode poll(JsonNode given) {
    List<Polled> polls = new ArrayList<>();
    if (given.has("before")) {
      polls.add(polled(given.get("before")));
    }
    polls.add(polled(Values.argument(given, "server")));
    List<WriteId> writes = new ArrayList<>();
    for (JsonNode write : given.path("writes")) {
      ObjectNode whole = write.deepCopy();
      writes.add(Values.write(whole.put("datastore", "posts")));
    }
    ObjectNode value = JSON.objectNode();
    ArrayNode statuses = value.putArray("statuses");
    MongoDecisions.poll(polls, writes).forEach(status -> statuses.add(status.toString()));
    return value;
  }

  private static ObjectNode position(JsonNode given) {
    JsonNode reply = Values.argument(given, "reply");
    @Nullable Server server =
        reply.has("clusterTime")
            ? new Server(
                "",
                place(reply.path("applied")),
                place(reply.path("committed")),
                reply.path("primary").asBoolean(),
                0,
                version(reply, "clusterTime"))
            : null;
    @Nullable Named found =
        MongoDecisions.position(
            Values.text(given, "of").equals("write"),
            given.path("majority").asBoolean(),
            reply.has("opTime") ? place(reply.path("opTime")) : null,
            reply.has("operationTime") ? Long.valueOf(version(reply, "operationTime")) : null,
            server);
    ObjectNode value = JSON.objectNode();
    if (found == null) {
      return value.putNull("position");
    }
    value
        .putObject("position")
        .put("key", found.key())
        .put("version", Long.toUnsignedString(found.version()));
    return value;
  }

  private static ObjectNode found(JsonNode given) {
    ObjectNode document = JSON.objectNode().set("ap", given.path("ap"));
    if (given.has("value")) {
      document.set("value", given.get("value"));
    }
    MongoDecisions.Found found = MongoDecisions.found(document.toString());
    ObjectNode value = JSON.objectNode();
    value.set("lineage", Values.json(found.lineage()));
    return value.put("match", found.match());
  }
}
