package io.antipode.s3;

import io.antipode.aws.AwsCall;
import io.antipode.aws.Kind;
import io.antipode.lineage.Lineage;
import io.antipode.request.Recording;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.SdkRequest;
import software.amazon.awssdk.core.SdkResponse;
import software.amazon.awssdk.services.s3.model.CopyObjectRequest;
import software.amazon.awssdk.services.s3.model.CreateMultipartUploadRequest;
import software.amazon.awssdk.services.s3.model.CreateMultipartUploadResponse;
import software.amazon.awssdk.services.s3.model.DeleteObjectRequest;
import software.amazon.awssdk.services.s3.model.DeleteObjectsRequest;
import software.amazon.awssdk.services.s3.model.DeleteObjectsResponse;
import software.amazon.awssdk.services.s3.model.DeletedObject;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.HeadObjectRequest;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;

/** One call of an instrumented client, and the object that it is about. */
final class Call extends AwsCall {
  /** Nothing has changed, nothing is there, or not what was asked for. */
  private static final Set<Integer> TELLING = Set.of(304, 404, 412, 416);

  private static final String UNVERSIONED = " met a bucket without versioning";

  private final S3Shim shim;
  private final @Nullable String bucket;
  private final @Nullable Place place;
  private final @Nullable String upload;

  /** Whether it is a part of a copy that keeps what its source has. */
  private final boolean isOfCopy;

  /** What the source of a copy says; null where it was not asked. */
  private @Nullable HeadObjectResponse source;

  /** What is stored with the object; null for nothing. */
  private @Nullable Lineage stored;

  /** Whether the application wants no list of what was deleted. */
  private boolean isQuiet;

  Call(S3Shim shim, String operation, SdkRequest request, @Nullable AwsCall whole) {
    super(
        shim,
        operation,
        Operations.kind(
            operation, request instanceof DeleteObjectRequest delete && delete.versionId() != null),
        whole,
        false);
    this.shim = shim;
    this.bucket = text(request, "Bucket");
    this.place = Place.of(bucket, text(request, "Key"), shim.region());
    this.upload = text(request, "UploadId");
    this.isOfCopy = whole instanceof Call call && call.operation().equals("CopyObject");
    this.source = whole instanceof Call call ? call.source : null;
  }

  private static @Nullable String text(SdkRequest request, String field) {
    return request.getValueForField(field, String.class).orElse(null);
  }

  private static String version(SdkResponse response) {
    return response.getValueForField("VersionId", String.class).orElse(Place.NO_VERSION);
  }

  @Override
  protected boolean isAnswer(Throwable error) {
    return error instanceof AwsServiceException refused && TELLING.contains(refused.statusCode());
  }

  // Before it is sent.

  @Override
  protected boolean asks(SdkRequest request) {
    return shim.stores()
        && request instanceof CopyObjectRequest copy
        && !CopySource.isReplaced(copy)
        && CopySource.of(copy) != null
        && !CopySource.changesNothing(copy);
  }

  @Override
  protected void ask(SdkRequest request) {
    @Nullable Consumer<HeadObjectRequest.Builder> asked =
        request instanceof CopyObjectRequest copy ? CopySource.of(copy) : null;
    if (asked != null) {
      source = shim.ask(asked);
    }
  }

  @Override
  protected SdkRequest plan(SdkRequest request) {
    if (kind() == Kind.UNKNOWN) {
      uncover("is not covered");
    } else if (request instanceof DeleteObjectsRequest several) {
      isQuiet = Boolean.TRUE.equals(several.delete().quiet());
      return several.toBuilder().delete(several.delete().toBuilder().quiet(false).build()).build();
    } else if (shim.stores()) {
      return labelled(request);
    }
    return request;
  }

  /** Returns a request whose object will have the current lineage in its metadata. */
  private SdkRequest labelled(SdkRequest request) {
    if (request instanceof PutObjectRequest put) {
      @Nullable Map<String, String> metadata = metadata(put.metadata());
      return metadata == null ? put : put.toBuilder().metadata(metadata).build();
    }
    if (request instanceof CreateMultipartUploadRequest begin) {
      if (isOfCopy && source == null) {
        shim.leftOut("a copy in parts");
      }
      @Nullable Map<String, String> metadata = metadata(begin.metadata());
      return metadata == null ? begin : begin.toBuilder().metadata(metadata).build();
    }
    if (request instanceof CopyObjectRequest copy) {
      if (!CopySource.isReplaced(copy) && source == null) {
        shim.leftOut(operation()); // It keeps what its source has, and nothing is added.
        return copy;
      }
      CopyObjectRequest kept = source == null ? copy : CopySource.kept(copy, source);
      @Nullable Map<String, String> metadata = metadata(kept.metadata());
      return metadata == null ? kept : kept.toBuilder().metadata(metadata).build();
    }
    return request;
  }

  /** Returns the metadata that an object is to have; null where nothing is to be changed. */
  private @Nullable Map<String, String> metadata(Map<String, String> given) {
    Lineage lineage = known().merge(Metadata.lineageOf(given, shim.datastore()));
    if (source != null) {
      lineage = lineage.merge(Metadata.lineageOf(source.metadata(), shim.datastore()));
    }
    stored = lineage;
    @Nullable Map<String, String> labelled =
        lineage.isEmpty() ? Metadata.without(given) : Metadata.labelled(given, lineage);
    if (labelled == null) { // Its readers learn no causes.
      shim.leftOut("metadata without room for '" + Metadata.NAME + "'");
      within(() -> Recording.markIncomplete(shim.datastore(), "size"));
    }
    return labelled;
  }

  // Its reply.

  @Override
  protected void record(SdkResponse response) {
    if (response instanceof CreateMultipartUploadResponse begun && stored != null) {
      shim.uploads().begin(begun.uploadId(), stored);
    } else if (response instanceof DeleteObjectsResponse deleted) {
      deleted.deleted().forEach(this::recordDeletion);
    } else if (kind() == Kind.WRITE) {
      recordWrite(version(response));
    } else if (shim.stores() && place != null) {
      if (response instanceof GetObjectResponse got) {
        shim.found(place, version(got), got.metadata());
      } else if (response instanceof HeadObjectResponse got) {
        shim.found(place, version(got), got.metadata());
      }
    }
  }

  private void recordWrite(String version) {
    if (shim.stores() && operation().equals("CompleteMultipartUpload")) {
      Lineage begun = shim.uploads().complete(upload);
      if (!begun.merge(known()).equals(begun)) { // Its metadata is that of the beginning.
        shim.leftOut("a late part of an upload");
      }
    }
    if (version.equals(Place.NO_VERSION)) {
      shim.uncovered(operation() + UNVERSIONED);
    } else if (place == null) {
      shim.uncovered(operation() + " names no bucket");
    } else {
      Recording.recordWrite(shim.written(place, version));
    }
  }

  private void recordDeletion(DeletedObject deleted) {
    @Nullable Place gone = Place.of(bucket, deleted.key(), shim.region());
    @Nullable String marker = deleted.deleteMarkerVersionId();
    // A version that ended for good, or a bucket without versioning.
    if (gone == null
        || marker == null
        || marker.equals(Place.NO_VERSION)
        || deleted.versionId() != null) {
      shim.uncovered(operation() + " left no delete marker");
    } else {
      Recording.recordWrite(shim.written(gone, marker));
    }
  }

  @Override
  protected SdkResponse shown(SdkResponse response) {
    if (response instanceof GetObjectResponse got && got.hasMetadata()) {
      return got.toBuilder().metadata(Metadata.without(got.metadata())).build();
    }
    if (response instanceof HeadObjectResponse got && got.hasMetadata()) {
      return got.toBuilder().metadata(Metadata.without(got.metadata())).build();
    }
    return isQuiet && response instanceof DeleteObjectsResponse several
        ? several.toBuilder().deleted((Collection<DeletedObject>) null).build()
        : response;
  }
}
