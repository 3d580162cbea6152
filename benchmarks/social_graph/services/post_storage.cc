// Posts, in one member of MongoDB: the primary in `us`, the secondary in `eu`. The documents are this service's own.
#include <mongoc/mongoc.h>

#include <stdexcept>

#include "service.h"

namespace social_graph {
namespace {

struct BsonDeleter {
  void operator()(bson_t* document) const { bson_destroy(document); }
};
using Bson = std::unique_ptr<_bson_t, BsonDeleter>;

Bson FromJson(const std::string& json) {
  bson_error_t error;
  Bson document(bson_new_from_json(reinterpret_cast<const std::uint8_t*>(json.data()),
                                   static_cast<ssize_t>(json.size()), &error));
  if (document == nullptr) throw std::runtime_error(error.message);
  return document;
}

/// The fields that queries go by, and the post as its .proto encodes it.
Bson Document(const Post& post) {
  const std::string bytes = post.SerializeAsString();
  Bson document(bson_new());
  BSON_APPEND_INT64(document.get(), "_id", post.post_id());
  BSON_APPEND_INT64(document.get(), "timestamp", post.timestamp_ms());
  BSON_APPEND_INT64(document.get(), "user_id", post.creator().user_id());
  BSON_APPEND_UTF8(document.get(), "text", post.text().c_str());
  BSON_APPEND_BINARY(document.get(), "post", BSON_SUBTYPE_BINARY, reinterpret_cast<const std::uint8_t*>(bytes.data()),
                     static_cast<std::uint32_t>(bytes.size()));
  return document;
}

Bson Among(const PostIds& ids) {
  std::string listed;
  for (const std::int64_t id : ids.post_ids()) {
    listed += (listed.empty() ? "" : ",") + ("{\"$numberLong\":\"" + std::to_string(id) + "\"}");
  }
  return FromJson("{\"_id\":{\"$in\":[" + listed + "]}}");
}

class PostStorageService final : public PostStorage::Service {
 public:
  explicit PostStorageService(const Process& process)
      : mongo_("posts", process["mongodb"],
               process["region"] == "us" ? Mongo::Member::kPrimary : Mongo::Member::kSecondary) {}

  grpc::Status StorePost(grpc::ServerContext*, const Post* post, Nothing*) override {
    const Bson document = Document(*post);
    bson_error_t error{};
    bool stored = false;
    mongo_.Run([&](mongoc_collection_t* posts) {
      stored = mongoc_collection_insert_one(posts, document.get(), nullptr, nullptr, &error);
    });
    return stored ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNAVAILABLE, error.message);
  }

  grpc::Status ReadPosts(grpc::ServerContext*, const PostIds* ids, Posts* found) override {
    if (ids->post_ids().empty()) return grpc::Status::OK;
    const Bson query = Among(*ids);
    bson_error_t error{};
    bool failed = false;
    mongo_.Run([&](mongoc_collection_t* posts) {
      found->Clear();
      const std::unique_ptr<mongoc_cursor_t, decltype(&mongoc_cursor_destroy)> cursor(
          mongoc_collection_find_with_opts(posts, query.get(), nullptr, nullptr), mongoc_cursor_destroy);
      const bson_t* document = nullptr;
      while (mongoc_cursor_next(cursor.get(), &document)) Add(*document, *found);
      failed = mongoc_cursor_error(cursor.get(), &error);
    });
    return failed ? grpc::Status(grpc::StatusCode::UNAVAILABLE, error.message) : grpc::Status::OK;
  }

 private:
  static void Add(const bson_t& document, Posts& found) {
    bson_iter_t field;
    if (!bson_iter_init_find(&field, &document, "post") || !BSON_ITER_HOLDS_BINARY(&field)) return;
    const std::uint8_t* bytes = nullptr;
    std::uint32_t size = 0;
    bson_iter_binary(&field, nullptr, &size, &bytes);
    found.add_posts()->ParseFromArray(bytes, static_cast<int>(size));
  }

  Mongo mongo_;
};

}  // namespace
}  // namespace social_graph

int main(int count, char** arguments) {
  const social_graph::Process process(count, arguments);
  social_graph::PostStorageService service(process);
  return process.Serve(&service);
}
