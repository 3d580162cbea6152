package io.antipode.mongodb;

import java.util.List;
import java.util.Set;
import org.bson.BsonDocument;

/** What commands do, by their names: no question to the server decides it. */
final class Commands {
  /** What a command means for a lineage. */
  enum Kind {
    READ,
    WRITE,
    NEITHER,
    UNKNOWN
  }

  private static final Set<String> WRITES =
      names(
          """
          bulkWrite cloneCollectionAsCapped collMod commitTransaction convertToCapped create
          createIndexes delete deleteIndexes drop dropDatabase dropIndexes findAndModify
          findandmodify insert renameCollection update
          """);

  private static final Set<String> READS =
      names(
          """
          aggregate collStats count dataSize dbHash dbStats distinct explain find geoSearch
          getMore listCollections listDatabases listIndexes mapReduce validate
          """);

  private static final Set<String> NEITHER =
      names(
          """
          abortTransaction authenticate buildInfo buildinfo configureFailPoint connPoolStats
          connectionStatus currentOp endSessions features getCmdLineOpts getDefaultRWConcern
          getLog getParameter getnonce hello hostInfo isMaster ismaster killAllSessions
          killCursors killOp killSessions listCommands lockInfo logRotate logout ping
          planCacheListFilters profile refreshSessions replSetGetConfig replSetGetRBID
          replSetGetStatus replSetStepDown replSetSyncFrom rolesInfo saslContinue saslStart
          serverStatus setParameter startSession top usersInfo waitForFailPoint whatsmyuri
          """);

  /** Writes whose reply has the term of their position. */
  private static final Set<String> TELLING = Set.of("delete", "insert", "update");

  /** Reads besides being writes. */
  private static final Set<String> READING_WRITES =
      Set.of("aggregate", "findAndModify", "findandmodify", "mapReduce");

  private Commands() {}

  /** Returns whether a reply to a write has the term of its position. */
  static boolean isTelling(String name) {
    return TELLING.contains(name);
  }

  /** Returns whether a command reads data, whatever else it does. */
  static boolean isReading(String name, Kind kind) {
    return kind == Kind.READ || kind == Kind.UNKNOWN || READING_WRITES.contains(name);
  }

  private static Set<String> names(String words) {
    return Set.of(words.strip().split("\\s+", -1));
  }

  /** Returns what a command does. */
  static Kind kind(BsonDocument command) {
    if (command.isEmpty()) {
      return Kind.UNKNOWN;
    }
    String name = command.getFirstKey();
    if (WRITES.contains(name)
        || (name.equals("aggregate") && stores(command))
        || (name.equals("mapReduce") && mapsOut(command))) {
      return Kind.WRITE;
    }
    if (READS.contains(name)) {
      return Kind.READ;
    }
    return NEITHER.contains(name) ? Kind.NEITHER : Kind.UNKNOWN;
  }

  /** Returns whether an aggregation stores its result: only the last stage may. */
  private static boolean stores(BsonDocument command) {
    List<BsonDocument> stages = Bson.docsAt(command, "pipeline");
    if (stages.isEmpty()) {
      return false;
    }
    BsonDocument last = stages.get(stages.size() - 1);
    return last.containsKey("$out") || last.containsKey("$merge");
  }

  /** Returns whether a map-reduce writes its result to a collection. */
  private static boolean mapsOut(BsonDocument command) {
    return command.containsKey("out") && Bson.at(command, "out", "inline") == null;
  }
}
