package io.antipode.spring;

import io.antipode.barrier.ReadsFrom;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * What is said of the client of MongoDB.
 *
 * @param datastore the name that every service spells alike; without it nothing is instrumented
 * @param readsFrom whether reads go to the primary, which is the default, or to a replica
 * @param database where promises are recorded, alike in every service; by default Boot's
 */
@ConfigurationProperties("antipode.mongodb")
public record AntipodeMongoDbProperties(
    @Nullable String datastore, @Nullable ReadsFrom readsFrom, @Nullable String database) {}
