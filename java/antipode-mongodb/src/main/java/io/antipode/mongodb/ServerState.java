package io.antipode.mongodb;

import io.antipode.ConfigurationException;
import java.util.Objects;
import org.bson.BsonDocument;
import org.bson.BsonObjectId;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/**
 * Where one member of a replica set stands.
 *
 * @param applied the last entry that it applied: what reads with the concern {@code local} show
 * @param committed the last that it knows a majority to have, never beyond {@code applied}
 * @param initiatedS the Unix second in which the set was initiated; 0 where that is not reported
 * @param incarnation the server's process, as far as that is reported, and its rollback id
 * @param heard the latest version that it has heard of; it refuses to wait for a later one
 */
record ServerState(
    String setName,
    OpTime applied,
    OpTime committed,
    boolean isPrimary,
    long initiatedS,
    String incarnation,
    long heard) {
  private static final String MONGOS =
      "the server is a mongos, and sharded clusters are not supported: the position of one shard's"
          + " log says nothing about the shard that is read; connect to one replica set";

  private static final String STANDALONE =
      "the server is no member of a replica set, so that its writes have no positions; start it"
          + " with --replSet (one member will do)";

  /** Adds to a command what makes its reply say where the server stands after it. */
  static BsonDocument asking(BsonDocument command) {
    return command.append("$replData", Bson.ONE).append("$oplogQueryData", Bson.ONE);
  }

  /** Returns the last entry that reads show. */
  OpTime shown(boolean isMajority) {
    return isMajority ? committed : applied;
  }

  /**
   * Returns what the reply to {@code hello} says; null where the server has no data to read now.
   *
   * @throws ConfigurationException if it is a mongos, or no member of a replica set
   */
  static @Nullable ServerState ofHello(BsonDocument reply) {
    if (Bson.textAt(reply, "msg").equals("isdbgrid")) {
      throw new ConfigurationException(MONGOS);
    }
    String setName = Bson.textAt(reply, "setName");
    if (setName.isEmpty() && !Bson.isTrueAt(reply, "isreplicaset")) {
      throw new ConfigurationException(STANDALONE);
    }
    OpTime applied = OpTime.at(reply, "lastWrite", "opTime");
    boolean isPrimary = Bson.isTrueAt(reply, "isWritablePrimary");
    boolean isReadable =
        (isPrimary || Bson.isTrueAt(reply, "secondary")) && !Bson.isTrueAt(reply, "arbiterOnly");
    if (setName.isEmpty() || applied == null || !isReadable) {
      return null;
    }
    OpTime majority = OpTime.at(reply, "lastWrite", "majorityOpTime");
    BsonValue process = Bson.at(reply, "topologyVersion", "processId");
    String named = process instanceof BsonObjectId id ? id.getValue().toHexString() : "";
    return new ServerState(
        setName,
        applied,
        OpTime.least(applied, majority == null ? new OpTime(-1, 0) : majority),
        isPrimary,
        initiatedS(reply),
        named + "/" + rollbackId(reply),
        heard(reply));
  }

  /** Returns where the server stood after a command that asked for it; null where not reported. */
  static @Nullable ServerState ofReply(BsonDocument reply, String setName) {
    OpTime applied = OpTime.at(reply, "$oplogQueryData", "lastOpApplied");
    OpTime committed = OpTime.at(reply, "$replData", "lastOpCommitted");
    if (applied == null || committed == null) {
      return null;
    }
    return new ServerState(
        setName,
        applied,
        OpTime.least(applied, committed),
        Bson.isTrueAt(reply, "$replData", "isPrimary"),
        initiatedS(reply),
        "/" + rollbackId(reply),
        heard(reply));
  }

  /**
   * The id of the set is an ObjectId that its first primary made, its time of creation in front.
   */
  private static long initiatedS(BsonDocument reply) {
    BsonValue id = Bson.at(reply, "$replData", "replicaSetId");
    return id instanceof BsonObjectId made
        ? Integer.toUnsignedLong(made.getValue().getTimestamp())
        : 0;
  }

  private static String rollbackId(BsonDocument reply) {
    Long id = Bson.integerAt(reply, "$oplogQueryData", "rbid");
    return id == null ? "" : id.toString();
  }

  private static long heard(BsonDocument reply) {
    return Objects.requireNonNullElse(Bson.stampAt(reply, "$clusterTime", "clusterTime"), 0L);
  }
}
