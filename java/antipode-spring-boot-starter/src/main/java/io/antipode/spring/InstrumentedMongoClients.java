package io.antipode.spring;

import com.mongodb.MongoClientSettings;
import com.mongodb.MongoDriverInformation;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import io.antipode.ConfigurationException;
import io.antipode.barrier.ReadsFrom;
import io.antipode.mongodb.MongoInstrumentation;
import io.antipode.mongodb.MongoShim;
import io.antipode.runtime.KillSwitch;
import java.util.ArrayList;
import java.util.List;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.boot.autoconfigure.mongo.MongoClientFactorySupport;
import org.springframework.boot.autoconfigure.mongo.MongoClientSettingsBuilderCustomizer;

/** Makes clients with Boot's settings, and shims, which are closed with the application. */
final class InstrumentedMongoClients implements DisposableBean {
  /** Where Table 2 would keep values; nothing here uses it. */
  private static final String COLLECTION = "antipode_kv";

  private final AntipodeMongoDbProperties properties;
  private final String database;
  private final Factory factory;
  private final List<MongoShim> shims = new ArrayList<>();

  InstrumentedMongoClients(
      AntipodeMongoDbProperties properties,
      String database,
      List<MongoClientSettingsBuilderCustomizer> customizers) {
    this.properties = properties;
    this.database = properties.database() == null ? database : properties.database();
    this.factory = new Factory(customizers);
  }

  private final class Factory extends MongoClientFactorySupport<MongoClient> {
    Factory(List<MongoClientSettingsBuilderCustomizer> customizers) {
      super(customizers, InstrumentedMongoClients.this::made);
    }
  }

  MongoClient create(MongoClientSettings settings) {
    return factory.createMongoClient(settings);
  }

  private MongoClient made(MongoClientSettings settings, MongoDriverInformation driver) {
    if (KillSwitch.isDisabled()) {
      return MongoClients.create(settings, driver);
    }
    String datastore = properties.datastore();
    if (datastore == null || datastore.isBlank()) {
      throw new ConfigurationException(
          "antipode.mongodb.datastore names the datastore, as every service does");
    }
    MongoShim.Builder builder = MongoShim.builder(datastore, settings, database, COLLECTION);
    if (properties.readsFrom() == ReadsFrom.REPLICA) {
      builder.readsFrom(ReadsFrom.REPLICA);
    }
    MongoShim shim = builder.register();
    shims.add(shim);
    MongoClientSettings.Builder prepared = MongoClientSettings.builder(settings);
    MongoInstrumentation instrumentation = MongoInstrumentation.prepare(shim, prepared);
    return instrumentation.instrument(MongoClients.create(prepared.build(), driver));
  }

  @Override
  public void destroy() {
    shims.forEach(MongoShim::close);
  }
}
