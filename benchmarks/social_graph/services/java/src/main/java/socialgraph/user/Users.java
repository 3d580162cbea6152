package socialgraph.user;

import io.grpc.Channel;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.TimeUnit;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Service;
import socialgraph.messages.ComposePostGrpc;
import socialgraph.messages.Nothing;
import socialgraph.messages.Part;
import socialgraph.messages.Post;
import socialgraph.messages.UserRequest;
import socialgraph.messages.UsersGrpc;

/** Uploads the author of a post. */
@Service
class Users extends UsersGrpc.UsersImplBase {
  private final ComposePostGrpc.ComposePostBlockingStub posts;
  private final long deadlineS;

  Users(Channel posts, @Value("${social-graph.deadline:5}") long deadlineS) {
    this.posts = ComposePostGrpc.newBlockingStub(posts);
    this.deadlineS = deadlineS;
  }

  @Override
  public void compose(UserRequest request, StreamObserver<Nothing> answer) {
    Part part =
        Part.newBuilder()
            .setRequestId(request.getRequestId())
            .setName("creator")
            .setPost(Post.newBuilder().setCreator(request.getUser()))
            .build();
    try {
      answer.onNext(posts.withDeadlineAfter(deadlineS, TimeUnit.SECONDS).upload(part));
      answer.onCompleted();
    } catch (StatusRuntimeException error) {
      answer.onError(error);
    }
  }
}
