package io.antipode.sns;

import io.antipode.Settings;
import io.antipode.aws.AwsCall;
import io.antipode.aws.Kind;
import io.antipode.request.Recording;
import io.antipode.request.Scope;
import java.util.Set;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.SdkResponse;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageRequest;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageResponse;

/** One call of an instrumented client. A publication enters nothing: nobody can wait for it. */
final class Call extends AwsCall {
  private static final Set<String> PUBLISHING =
      Set.of("Publish", "PublishBatch", "SendMessage", "SendMessageBatch");

  private final SnsShim shim;

  /** Whether the application named the attribute that has the lineage. */
  private final boolean isShown;

  Call(SnsShim shim, String operation, SdkRequest request) {
    super(shim, operation, Kind.NEITHER);
    this.shim = shim;
    this.isShown =
        request instanceof ReceiveMessageRequest receive
            && receive.messageAttributeNames().contains(Label.NAME);
    if (PUBLISHING.contains(operation) && Scope.currentOrNull() == null) {
      Recording.unscoped("write", shim.datastore(), Settings.current().onUnscoped());
    }
  }

  @Override
  protected SdkRequest plan(SdkRequest request) {
    if (request instanceof ReceiveMessageRequest receive) {
      return Hidden.asked(receive);
    }
    if (!PUBLISHING.contains(operation())) {
      return request;
    }
    SdkRequest[] labelled = {request};
    within(() -> labelled[0] = shim.publications().labelled(request));
    return labelled[0];
  }

  @Override
  protected void record(SdkResponse response) {}

  @Override
  protected SdkResponse shown(SdkResponse response) {
    if (!(response instanceof ReceiveMessageResponse received)) {
      return response;
    }
    SnsShim.hidden().note(received);
    return isShown ? received : Hidden.shown(received);
  }
}
