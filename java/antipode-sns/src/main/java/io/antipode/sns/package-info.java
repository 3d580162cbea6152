/** SNS and SQS: messages that carry what they depend on, in one attribute. */
@NullMarked
package io.antipode.sns;

import org.jspecify.annotations.NullMarked;
