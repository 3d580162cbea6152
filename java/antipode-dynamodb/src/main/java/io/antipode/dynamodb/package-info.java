/** DynamoDB: stamps that the client makes, values with their stored lineage, waits. */
@NullMarked
package io.antipode.dynamodb;

import org.jspecify.annotations.NullMarked;
