package io.antipode.spring;

import java.net.URI;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What is said of the regions of S3.
 *
 * @param copies for buckets of other regions, the one of the client's region that has their copies,
 *     where the names differ
 * @param regions endpoints of other regions by their names, where AWS does not have them there
 */
@ConfigurationProperties("antipode.s3")
public record AntipodeS3Properties(
    @DefaultValue Map<String, String> copies, @DefaultValue Map<String, URI> regions) {}
