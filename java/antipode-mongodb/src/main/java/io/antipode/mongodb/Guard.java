package io.antipode.mongodb;

import com.mongodb.MongoException;
import com.mongodb.connection.ConnectionDescription;
import com.mongodb.event.CommandStartedEvent;
import io.antipode.ConfigurationException;
import io.antipode.barrier.Floor;
import io.antipode.barrier.Observation;
import io.antipode.barrier.StaleSnapshotException;
import io.antipode.barrier.UnreachableException;
import io.antipode.mongodb.Commands.Kind;
import java.time.Duration;
import java.util.function.Predicate;
import org.bson.BsonDocument;
import org.bson.BsonTimestamp;
import org.bson.BsonValue;
import org.jspecify.annotations.Nullable;

/**
 * Holds a read back until the server that answers it shows the floor. That server is asked on a
 * connection of the library's own, while the read has its own already: a server that rolls back
 * closes that one first, and a read on another one is held back again.
 */
final class Guard {
  private final MongoShim shim;
  private final Members members;
  private final Concerns concerns;
  private final Memory memory = new Memory();

  Guard(MongoShim shim, Members members) {
    this.shim = shim;
    this.members = members;
    this.concerns = new Concerns(shim.datastore());
  }

  void answered(Sent sent) {
    concerns.answered(sent.level());
  }

  /**
   * Waits until a command may be sent.
   *
   * @throws StaleSnapshotException if it would read from a snapshot that is older than the floor
   * @throws io.antipode.barrier.UnmetException if a floor was not met
   * @throws ConfigurationException if its server has no positions
   * @throws MongoException as the driver does, where the server could not be asked
   */
  void pass(CommandStartedEvent event, Kind kind, Call call, @Nullable SessionState state) {
    BsonDocument command = event.getCommand();
    boolean isStart = command.containsKey("startTransaction");
    if (!isStart && !Commands.isReading(event.getCommandName(), kind)) {
      return;
    }
    boolean isInTransaction = command.containsKey("autocommit");
    boolean isToldOf =
        kind == Kind.READ && !isInTransaction && !event.getCommandName().equals("getMore");
    boolean isFirst = isToldOf && call.tell();
    Floor floor = isFirst ? Floor.current(shim) : Floor.currentAgain(shim);
    if (isFirst) {
      call.ask(floor);
    }
    if (floor == null) {
      return;
    }
    if (isInTransaction && !isStart) {
      if (state != null) {
        check(floor, state.proved()::covers);
      }
      call.answer(floor);
      return;
    }
    @Nullable BsonTimestamp snapshot = snapshot(command);
    if (snapshot != null && state != null) {
      check(floor, each -> reaches(snapshot, each) && state.proved().keeps(each));
    }
    hold(event, floor);
    call.answer(floor);
    if (state != null && snapshot == null && !floor.isServed()) {
      state.prove(Shown.of(floor)); // The snapshot is taken after it.
    }
  }

  private static @Nullable BsonTimestamp snapshot(BsonDocument command) {
    BsonValue time = Bson.at(command, "readConcern", "atClusterTime");
    return time instanceof BsonTimestamp at ? at : null;
  }

  private static boolean reaches(BsonTimestamp snapshot, Floor floor) {
    return Shown.of(floor).positions().values().stream()
        .allMatch(version -> Long.compareUnsigned(version, snapshot.getValue()) <= 0);
  }

  private void check(Floor floor, Predicate<Floor> shows) {
    if (!shows.test(floor)) {
      floor.failSnapshot(
          new StaleSnapshotException(
              "a session of "
                  + shim.datastore()
                  + " reads from a snapshot that is older than what the barrier waited for: end its"
                  + " transaction, or open a new session, before the read"),
          shows);
    }
  }

  private void hold(CommandStartedEvent event, Floor floor) {
    ConnectionDescription connection = event.getConnectionDescription();
    if (!Instrumented.isMember(connection.getServerType())) {
      throw new ConfigurationException(
          "a read of "
              + shim.datastore()
              + " cannot wait: "
              + connection.getServerAddress()
              + " is no member of a replica set");
    }
    Link server = members.at(connection.getServerAddress());
    boolean isMajority = isMajority(event.getCommand(), server, floor);
    boolean isProof = shim.isMajority() || !isMajority;
    if (memory.shows(connection.getConnectionId(), floor, isMajority, isProof)) {
      return;
    }
    Looks looks = new Looks(server, floor, isMajority);
    shim.hold(floor, looks);
    if (!floor.isServed()) {
      memory.learn(connection.getConnectionId(), looks.incarnation, floor, isMajority);
    }
  }

  private boolean isMajority(BsonDocument command, Link server, Floor floor) {
    try {
      return concerns.isMajority(command, server, floor.pollTimeout());
    } catch (UnreachableException error) {
      floor.expire(error);
      throw error.getCause() instanceof MongoException own ? own : error;
    }
  }

  /** Polls the server that a read goes to. */
  private final class Looks implements Floor.Look {
    private final Link server;
    private final Floor floor;
    private final boolean isMajority;
    private String incarnation = "";

    Looks(Link server, Floor floor, boolean isMajority) {
      this.server = server;
      this.floor = floor;
      this.isMajority = isMajority;
    }

    @Override
    public Observation observe(Duration timeout) {
      Observation shown = shim.look(server.within(timeout), floor, isMajority);
      incarnation = shown.server();
      return shown;
    }
  }
}
