/** The shim of ActiveMQ Classic: lineages in the properties of messages, receipts, promises. */
@NullMarked
package io.antipode.activemq;

import org.jspecify.annotations.NullMarked;
