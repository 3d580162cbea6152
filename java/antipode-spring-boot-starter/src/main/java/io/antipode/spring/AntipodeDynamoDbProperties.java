package io.antipode.spring;

import java.net.URI;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What is said of the regions of DynamoDB.
 *
 * @param promiseTable where promises are recorded, alike in every service and region
 * @param regions endpoints of other regions by their names, where AWS does not have them there
 */
@ConfigurationProperties("antipode.dynamodb")
public record AntipodeDynamoDbProperties(
    @Nullable String promiseTable, @DefaultValue Map<String, URI> regions) {}
