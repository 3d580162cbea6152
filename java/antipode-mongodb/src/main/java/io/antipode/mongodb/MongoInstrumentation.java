package io.antipode.mongodb;

import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import com.mongodb.event.CommandListener;
import io.antipode.barrier.Places;
import java.util.ArrayList;
import java.util.List;

/**
 * Instruments a client that somebody else makes, as Spring Boot does: {@link #prepare} its
 * settings, and {@link #instrument} what was made of them. Elsewhere {@link
 * MongoShim#instrument(MongoClientSettings)} does both.
 */
public final class MongoInstrumentation {
  private final Instrumented instrumented;

  private MongoInstrumentation(Instrumented instrumented) {
    this.instrumented = instrumented;
  }

  /**
   * Lets the library hear of the commands of one client.
   *
   * @param settings of the client, but for this complete
   */
  public static MongoInstrumentation prepare(MongoShim shim, MongoClientSettings.Builder settings) {
    MongoClientSettings plain = settings.build();
    Places places = Places.of(plain.getConnectionPoolSettings()::getMaxSize);
    Instrumented instrumented = new Instrumented(shim, shim.members(plain), places);
    List<CommandListener> listeners = new ArrayList<>();
    listeners.add(instrumented); // First, for others hear of no command that is not sent.
    listeners.addAll(plain.getCommandListeners());
    MongoClientSettings.Builder unused = settings.commandListenerList(listeners);
    return new MongoInstrumentation(instrumented);
  }

  /**
   * Returns a client for the application's use, instead of the one that was made of the settings;
   * whatever comes from it is instrumented. Closing it closes the other.
   */
  public MongoClient instrument(MongoClient made) {
    if (Face.isFace(made)) {
      return made;
    }
    instrumented.begin(made);
    return (MongoClient) Face.of(instrumented, made);
  }

  /** Returns whether a client is one that the library returned. */
  public static boolean isInstrumented(MongoClient client) {
    return Face.isFace(client);
  }
}
