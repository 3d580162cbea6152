/** The shim of RabbitMQ: lineages in the headers of messages, receipts, promises. */
@NullMarked
package io.antipode.rabbitmq;

import org.jspecify.annotations.NullMarked;
