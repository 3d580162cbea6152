package io.antipode.mongodb;

import com.mongodb.MongoException;
import com.mongodb.connection.ConnectionDescription;
import com.mongodb.event.CommandStartedEvent;
import io.antipode.ConfigurationException;
import io.antipode.barrier.Floor;
import io.antipode.barrier.HeldRead;
import io.antipode.barrier.Observation;
import io.antipode.barrier.Places;
import io.antipode.barrier.StaleRead;
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

  /** Of the client's pool. */
  private final Places places;

  private final Concerns concerns;
  private final Memory memory;

  Guard(MongoShim shim, Members members, Places places) {
    this.shim = shim;
    this.members = members;
    this.places = places;
    this.memory = new Memory(shim.isMajority());
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
    Floor floor = isToldOf ? call.retried() : null;
    boolean isRepeatable = isFirst || floor != null;
    if (floor == null) {
      StaleRead stale = call.stale();
      floor = isFirst ? Floor.current(shim, null, stale) : Floor.currentAgain(shim, stale);
    }
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
    if (!hold(event, floor, isRepeatable ? call : null)) {
      return;
    }
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

  /**
   * Waits until the server of a read shows its floor.
   *
   * @param call that is made again if it does not show it yet; null for one that cannot be
   * @return whether the read may be sent; otherwise its call is made again later
   */
  private boolean hold(CommandStartedEvent event, Floor floor, @Nullable Call call) {
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
    if (memory.shows(connection.getConnectionId(), floor, isMajority)) {
      return true;
    }
    Looks looks = new Looks(server, floor, isMajority);
    if (call == null) {
      shim.hold(floor, places, looks);
    } else if (!isShown(floor, looks, call)) {
      return false;
    }
    if (!floor.isServed()) {
      memory.learn(connection.getConnectionId(), looks.incarnation, floor, isMajority);
    }
    return true;
  }

  /** Looks once; where that is too early, the call is made again after a pause. */
  private boolean isShown(Floor floor, Looks looks, Call call) {
    if (floor.isOver()) {
      return true;
    }
    HeldRead read = call.held(floor, shim);
    try {
      Duration pause = take(read, looks);
      if (pause != null) {
        call.retry(pause);
      }
      return pause == null;
    } catch (UnreachableException error) {
      throw MongoShim.own(error);
    }
  }

  private static @Nullable Duration take(HeldRead read, Looks looks) {
    try {
      return read.take(looks.observe(read.pollTimeout()));
    } catch (UnreachableException error) {
      read.failed(error);
      throw error;
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
