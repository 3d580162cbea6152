/** What the shims of AWS's stores share: followed calls of clients of the SDK, and regions. */
@NullMarked
package io.antipode.aws;

import org.jspecify.annotations.NullMarked;
