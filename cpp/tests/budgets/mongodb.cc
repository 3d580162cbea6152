#include <mongoc/mongoc.h>

#include <memory>
#include <stdexcept>

#include "antipode/mongodb_client.h"
#include "budgets/calls.h"

namespace antipode::budgets {
namespace {

/// A document that is destroyed with its block.
struct Document {
  explicit Document(bson_t* made) : of(made) {}
  ~Document() { bson_destroy(of); }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  bson_t* of;
};

struct Destroy {
  void operator()(mongoc_client_t* client) const { mongoc_client_destroy(client); }
  void operator()(mongoc_collection_t* collection) const { mongoc_collection_destroy(collection); }
  void operator()(mongoc_cursor_t* cursor) const { mongoc_cursor_destroy(cursor); }
};
template <typename Native>
using Owned = std::unique_ptr<Native, Destroy>;

/// A client and its collection.
struct Native {
  explicit Native(const std::string& uri)
      : client(mongoc_client_new(uri.c_str())),
        collection(mongoc_client_get_collection(client.get(), "app", "budget")) {}

  Owned<mongoc_client_t> client;
  Owned<mongoc_collection_t> collection;
};

void Done(bool done) {
  if (!done) throw std::runtime_error("the call failed");
}

class Calls {
 public:
  explicit Calls(const Words& words)
      : uri_("mongodb://" + words.at(0) + "/?directConnection=true"),
        shim_(Opened()),
        ours_(uri_),
        plain_(uri_),
        client_(std::make_unique<mongodb::Client>(shim_, ours_.client.get())) {}
  ~Calls() {
    client_.reset();
    shim_->Close();
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void CountAll() {
    const Drivers drivers{{"libmongoc", MONGOC_VERSION_S}};
    Compare(
        "libmongoc: insert", drivers, [&] { Done(client_->Call([&] { return Insert(ours_); })); },
        [&] { Done(Insert(plain_)); });
    Compare(
        "libmongoc: update", drivers, [&] { Done(client_->Call([&] { return Update(ours_); })); },
        [&] { Done(Update(plain_)); });
    const auto next = [&](mongoc_cursor_t* cursor, const bson_t** found) { return client_->Next(cursor, found); };
    Compare(
        "libmongoc: find", drivers, [&] { Find(ours_, next); }, [&] { Find(plain_, mongoc_cursor_next); });
  }

 private:
  [[nodiscard]] std::shared_ptr<mongodb::Shim> Opened() const {
    mongodb::Options options;
    options.database = "app";
    options.collection = "posts";
    return mongodb::Shim::Open(kDatastore, uri_, options);
  }

  static bool Insert(const Native& on) {
    const Document document(BCON_NEW("n", BCON_INT32(1)));
    return mongoc_collection_insert_one(on.collection.get(), document.of, nullptr, nullptr, nullptr);
  }
  bool Update(const Native& on) const {
    const Document change(BCON_NEW("$inc", "{", "n", BCON_INT32(1), "}"));
    return mongoc_collection_update_one(on.collection.get(), none_.of, change.of, nullptr, nullptr, nullptr);
  }
  template <typename Next>
  void Find(const Native& on, Next&& next) const {
    const Owned<mongoc_cursor_t> cursor(
        mongoc_collection_find_with_opts(on.collection.get(), none_.of, one_.of, nullptr));
    const bson_t* found = nullptr;
    while (next(cursor.get(), &found)) continue;
    Done(!mongoc_cursor_error(cursor.get(), nullptr));
  }

  const Document none_{bson_new()};
  const Document one_{BCON_NEW("limit", BCON_INT64(1))};
  std::string uri_;
  std::shared_ptr<mongodb::Shim> shim_;
  Native ours_;
  Native plain_;
  std::unique_ptr<mongodb::Client> client_;
};

}  // namespace

void CountMongoDb(const Words& words) {
  mongoc_init();
  Calls(words).CountAll();
}

}  // namespace antipode::budgets
