/** What Spring Boot sets up: scopes of requests, lineages of HTTP calls, settings. */
@NullMarked
package io.antipode.spring;

import org.jspecify.annotations.NullMarked;
