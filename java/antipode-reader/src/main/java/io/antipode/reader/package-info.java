/** A service of Spring Boot that reads posts at a replica. */
@NullMarked
package io.antipode.reader;

import org.jspecify.annotations.NullMarked;
