/** What the shims of brokers share: names of publications, headers, receipts. */
@NullMarked
package io.antipode.messages;

import org.jspecify.annotations.NullMarked;
