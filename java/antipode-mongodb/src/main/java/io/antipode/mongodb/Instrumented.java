package io.antipode.mongodb;

import com.mongodb.MongoCommandException;
import com.mongodb.MongoException;
import com.mongodb.MongoServerException;
import com.mongodb.ServerAddress;
import com.mongodb.client.MongoClient;
import com.mongodb.connection.ServerDescription;
import com.mongodb.connection.ServerType;
import com.mongodb.event.CommandFailedEvent;
import com.mongodb.event.CommandListener;
import com.mongodb.event.CommandStartedEvent;
import com.mongodb.event.CommandSucceededEvent;
import io.antipode.ConfigurationException;
import io.antipode.barrier.Places;
import io.antipode.barrier.UnreachableException;
import io.antipode.lineage.WriteId;
import io.antipode.mongodb.Commands.Kind;
import io.antipode.request.Recording;
import io.antipode.runtime.Counts;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.logging.Level;
import org.bson.BsonDocument;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/**
 * Hears every command of a client of the application's, in the thread that calls: what was written
 * enters the lineage, and a read waits in front of its command, when the driver has chosen the
 * connection that will answer it.
 */
final class Instrumented implements CommandListener {
  /** The longest that a question about a write may last; a first connection takes its time. */
  private static final Duration QUESTION = Duration.ofSeconds(5);

  private static final Set<ServerType> MEMBERS =
      Set.of(
          ServerType.REPLICA_SET_PRIMARY,
          ServerType.REPLICA_SET_SECONDARY,
          ServerType.REPLICA_SET_OTHER);

  private final MongoShim shim;
  private final Members members;
  private final Guard guard;
  private final Map<BsonValue, SessionState> sessions = Recent.map();

  /** The latest term in which a server was seen to be primary; terms only grow. */
  private final Map<ServerAddress, Long> terms = Recent.map();

  private volatile @Nullable MongoClient client;

  /**
   * Prepares to hear commands.
   *
   * @param places of the client's pool
   */
  Instrumented(MongoShim shim, Members members, Places places) {
    this.shim = shim;
    this.members = members;
    this.guard = new Guard(shim, members, places);
  }

  /** Says whose commands these are. */
  void begin(MongoClient made) {
    client = made;
  }

  String datastore() {
    return shim.datastore();
  }

  // What the driver reports.

  @Override
  public void commandStarted(CommandStartedEvent event) {
    Kind kind = Commands.kind(event.getCommand());
    Call call = Call.of(this);
    if (kind == Kind.NEITHER && !event.getCommand().containsKey("autocommit")) {
      return;
    }
    if (call == null) {
      unseen(kind);
      return;
    }
    @Nullable SessionState state = session(event.getCommand());
    try {
      guard.pass(event, kind, call, state);
    } catch (RuntimeException error) {
      call.refuse(error);
      throw new Refusal(error);
    }
    if (call.isRetried()) {
      throw new Refusal(new MongoException("the read waits, and is made again"));
    }
    try {
      call.sent(sent(event, kind, state));
    } catch (RuntimeException error) {
      misunderstood(error);
    }
  }

  private Sent sent(CommandStartedEvent event, Kind kind, @Nullable SessionState state) {
    Kind means = kind;
    @Nullable SessionState commits = null;
    if (event.getCommand().containsKey("autocommit") && state != null) {
      // Nothing is written before the commit.
      boolean isCommit = event.getCommandName().equals("commitTransaction");
      boolean isEnd = isCommit || event.getCommandName().equals("abortTransaction");
      means = isCommit && state.hasWritten() ? Kind.WRITE : Kind.NEITHER;
      commits = means == Kind.WRITE ? state : null;
      if (!isCommit && (kind == Kind.WRITE || kind == Kind.UNKNOWN)) {
        state.write();
      }
      Recording.recordUncommitted(datastore(), state, !isEnd && state.hasWritten());
    }
    return Sent.of(event, means, commits, termBefore(event, means));
  }

  /** Returns what is known of the transaction or the snapshot of a command; null for none. */
  private @Nullable SessionState session(BsonDocument command) {
    BsonValue id = Bson.at(command, "lsid", "id");
    boolean isSnapshot = Bson.textAt(command, "readConcern", "level").equals("snapshot");
    if (id == null || !(isSnapshot || command.containsKey("autocommit"))) {
      return null;
    }
    SessionState state = sessions.computeIfAbsent(id, absent -> new SessionState());
    boolean isBegun = Bson.at(command, "readConcern", "atClusterTime") != null;
    if (command.containsKey("startTransaction") || (isSnapshot && !isBegun)) {
      state.begin();
    }
    return state;
  }

  private @Nullable Long termBefore(CommandStartedEvent event, Kind means) {
    boolean isWrite = means == Kind.WRITE || means == Kind.UNKNOWN;
    String concern = Sent.concern(event.getCommand());
    if (!isWrite
        || Commands.isTelling(event.getCommandName())
        || "majority".equals(concern)
        || "0".equals(concern)
        || !isMember(event.getConnectionDescription().getServerType())) {
      return null;
    }
    ServerAddress server = event.getConnectionDescription().getServerAddress();
    Long known = terms.get(server);
    if (known != null) {
      return known;
    }
    ServerState state = primary(server);
    return state == null ? null : Long.valueOf(state.applied().term());
  }

  static boolean isMember(ServerType type) {
    return MEMBERS.contains(type);
  }

  /** Asks where a primary stands; null where it is none, or does not answer. */
  private @Nullable ServerState primary(ServerAddress server) {
    try {
      ServerState state = members.at(server).within(QUESTION).hello();
      if (!state.isPrimary()) {
        return null;
      }
      terms.merge(server, state.applied().term(), Math::max);
      return state;
    } catch (MongoException | UnreachableException | ConfigurationException error) {
      return null;
    }
  }

  @Override
  public void commandSucceeded(CommandSucceededEvent event) {
    Call call = Call.of(this);
    Sent sent = call == null ? null : call.sent();
    if (call == null || sent == null || !sent.name().equals(event.getCommandName())) {
      return;
    }
    guard.answered(sent);
    try {
      call.answered(sent, event.getResponse());
    } catch (RuntimeException error) {
      misunderstood(error);
    }
  }

  @Override
  public void commandFailed(CommandFailedEvent event) {
    Call call = Call.of(this);
    Sent sent = call == null ? null : call.sent();
    if (call == null || sent == null || !sent.name().equals(event.getCommandName())) {
      return;
    }
    Throwable error = event.getThrowable();
    try {
      if (error instanceof MongoServerException refusal) {
        call.refused(
            sent,
            refusal,
            error instanceof MongoCommandException told ? told.getResponse() : new BsonDocument());
      } else {
        call.lost(sent);
      }
    } catch (RuntimeException broken) {
      misunderstood(broken);
    }
  }

  /** A client that was prepared for this and then used without its proxy. */
  private void unseen(Kind kind) {
    if (kind == Kind.WRITE || kind == Kind.UNKNOWN) {
      Counts.count("uncovered_write", datastore());
      Recording.markIncomplete(datastore(), "unsampled");
    }
    Counts.logOnce(
        "mongodb_unseen",
        datastore(),
        "",
        () ->
            "a client of "
                + datastore()
                + " is used by another object than the one that instrument() returned: its writes"
                + " are not recorded, and its reads do not wait");
  }

  /** What cannot be understood may have been a write. */
  private void misunderstood(RuntimeException error) {
    Recording.markIncomplete(datastore(), "unsampled");
    Counts.LOG.log(Level.WARNING, "a reply of " + datastore() + " was not understood", error);
  }

  // What a write is named by.

  /** Returns the name of a write that was answered; null, and a mark, where it has none. */
  @Nullable WriteId named(Sent sent, BsonDocument reply, boolean isMajority) {
    Positions.@Nullable Position position = position(sent, reply, isMajority);
    if (position == null) {
      shim.unsampled();
      return null;
    }
    return shim.named(position);
  }

  private Positions.@Nullable Position position(Sent sent, BsonDocument reply, boolean isMajority) {
    ServerAddress server = sent.connection().getServerAddress();
    if (!isMember(sent.connection().getServerType())) {
      Counts.logOnce(
          "mongodb_configuration",
          datastore(),
          "",
          () -> "writes to " + datastore() + " have no positions: " + server + " is no member");
      return null;
    }
    String set = setName(server);
    if (set.isEmpty()) {
      return null;
    }
    Positions.Told told = Positions.Told.of(reply, set);
    if (told.written() != null) {
      terms.merge(server, told.written().term(), Math::max);
    } else if (!isMajority && told.operation() != null) {
      told = asked(sent, server, told.operation());
    }
    return Positions.ofWrite(told, set, isMajority);
  }

  /**
   * Returns what the server says after a write whose reply had no term. Terms only grow: one that
   * was the server's before and is afterwards is the write's. Else the oplog shows it.
   */
  private Positions.Told asked(Sent sent, ServerAddress server, long operation) {
    @Nullable ServerState after = primary(server);
    boolean isSame =
        after != null && Long.valueOf(after.applied().term()).equals(sent.termBefore());
    return isSame
        ? new Positions.Told(null, operation, after)
        : new Positions.Told(entry(server, operation), operation, null);
  }

  /** Returns the entry of the oplog that is a write; null where it is gone, or may not be read. */
  private @Nullable OpTime entry(ServerAddress server, long version) {
    try {
      OpTime found = members.at(server).within(QUESTION).firstFrom(version);
      return found != null && found.version() == version ? found : null;
    } catch (MongoException | UnreachableException error) {
      return null;
    }
  }

  private String setName(ServerAddress server) {
    MongoClient asked = client;
    if (asked != null) {
      for (ServerDescription each : asked.getClusterDescription().getServerDescriptions()) {
        if (each.getAddress().equals(server) && each.getSetName() != null) {
          return each.getSetName();
        }
      }
    }
    try {
      return members.at(server).within(QUESTION).hello().setName();
    } catch (MongoException | UnreachableException | ConfigurationException error) {
      return "";
    }
  }

  /**
   * Why a command must not be sent: the driver catches exceptions of listeners, and lets errors
   * pass. It never leaves the proxy of a client.
   */
  static final class Refusal extends Error {
    private static final long serialVersionUID = 1L;

    Refusal(RuntimeException why) {
      super(why);
    }
  }
}
