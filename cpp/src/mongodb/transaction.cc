#include "mongodb/transaction.h"

#include <exception>
#include <memory>

#include "mongodb/link.h"

namespace antipode::mongodb {
namespace {

/// With it the server vouches for it that nothing was committed.
constexpr const char* kTransient = "TransientTransactionError";
constexpr unsigned kIncrementBits = 32;

struct Attempt {
  const std::function<void(Transaction&)>& work;
  std::exception_ptr failure;
};

/// Called by the client, in C: nothing may be thrown through it.
bool Try(mongoc_client_session_t* session, void* context, bson_t** reply, bson_error_t* error) {
  auto& attempt = *static_cast<Attempt*>(context);
  attempt.failure = nullptr;
  Transaction transaction(session);
  try {
    attempt.work(transaction);
    return true;
  } catch (...) {
    attempt.failure = std::current_exception();
    *reply = bson_copy(&transaction.refusal().bson());
    bson_set_error(error, MONGOC_ERROR_TRANSACTION, 0, "the work of the transaction failed");
    return false;
  }
}

struct Destroy {
  void operator()(mongoc_client_session_t* session) const { mongoc_client_session_destroy(session); }
  void operator()(mongoc_transaction_opt_t* options) const { mongoc_transaction_opts_destroy(options); }
};

}  // namespace

Doc Transaction::Ask(const std::string& database, const Doc& command) {
  bson_error_t error;
  Doc options;
  if (!mongoc_client_session_append(session_, options.get(), &error)) throw Error(error.message);
  bson_t reply;
  const bool done = mongoc_client_command_with_opts(mongoc_client_session_get_client(session_), database.c_str(),
                                                    &command.bson(), nullptr, &options.bson(), &reply, &error);
  Doc answer(reply);
  bson_destroy(&reply);
  if (done) return answer;
  refusal_ = answer;
  if (At(answer.bson(), "ok")) throw Error(error.message, static_cast<int>(error.code));
  throw NoAnswer(error.message, false);
}

std::uint64_t Committed(mongoc_client_t* client, const mongoc_write_concern_t* concern,
                        const std::function<void(Transaction&)>& work) {
  bson_error_t error;
  const std::unique_ptr<mongoc_client_session_t, Destroy> session(mongoc_client_start_session(client, nullptr, &error));
  if (!session) throw NoAnswer(error.message, false);
  const std::unique_ptr<mongoc_transaction_opt_t, Destroy> options(mongoc_transaction_opts_new());
  mongoc_transaction_opts_set_write_concern(options.get(), concern);
  Attempt attempt{work, nullptr};
  bson_t reply;
  const bool done = mongoc_client_session_with_transaction(session.get(), Try, options.get(), &attempt, &reply, &error);
  const bool transient = !done && mongoc_error_has_label(&reply, kTransient);
  bson_destroy(&reply);
  if (attempt.failure) std::rethrow_exception(attempt.failure);
  if (!done) throw NoAnswer(error.message, !transient);
  std::uint32_t seconds = 0;
  std::uint32_t increment = 0;
  mongoc_client_session_get_operation_time(session.get(), &seconds, &increment);
  return (std::uint64_t{seconds} << kIncrementBits) | increment;
}

}  // namespace antipode::mongodb
