#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "antipode/export.h"
#include "antipode/scope.h"
#include "antipode/settings.h"

namespace antipode {

/// Headers of HTTP or metadata of gRPC, in order; a name may come several times, and in any case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// The scope of a request that came with these headers. It never throws for what they say.
///
/// `held` is the current scope where an earlier reading of the same request may have opened one: while it is open,
/// what came joins it, and it is returned.
ANTIPODE_EXPORT std::shared_ptr<Scope> Extract(const Headers& headers, std::shared_ptr<Scope> held = nullptr);

/// What the answer of the request of `scope` carries back in the header `antipode-lineage`: what the request added.
/// None where nothing was added and nobody asked. Call it last: what is written later is counted.
ANTIPODE_EXPORT std::optional<std::string> AnswerOf(Scope& scope);
/// Puts that into the headers of a response, in place of one that is there.
ANTIPODE_EXPORT void InjectResponse(Scope& scope, Headers& headers);

/// Merges the lineage of a response into its caller's scope while that is open, and returns it.
ANTIPODE_EXPORT Lineage ExtractResponse(const Headers& headers, std::string_view service, Scope* scope);

/// Takes everything of this library out of headers: for gateways, on the way in and on the way out.
ANTIPODE_EXPORT void Strip(Headers& headers);

/// For propagators: baggage with a lineage as its first member, in place of one that is there, cut at a member's end
/// within what platforms pass on.
ANTIPODE_EXPORT std::string WithMember(std::string_view baggage, std::string_view text);

/// What is called, where that is no HTTP request.
struct CallTarget {
  std::string service;             ///< Whom, in marks.
  std::string peer;                ///< By what it is remembered whether it answers with lineages.
  std::vector<std::string> hosts;  ///< Each of them must be one that may get a lineage; a port may follow. Without
                                   ///< hosts it gets one only where `egress_hosts` is not set.
  std::string path;                ///< For `peers`.
};

/// One HTTP request on its way out, in the scope that is current as it begins: what it carries, and what its end says.
///
///     antipode::OutgoingCall call("http", "posts.internal", 8080, "/v1/posts");
///     call.Outfit(headers);
///     ...                                    // send; for each attempt one of:
///     call.Answered(200, header);            // with `antipode-lineage`, or none
///     call.Failed();                         // sent, or maybe, and the answer was not learned
///
/// An attempt that was certainly not sent ends without a word. Thread-safe, but for Outfit.
class ANTIPODE_EXPORT OutgoingCall {
 public:
  /// `port` is the URL's own, none for the scheme's; `service` names whom is called, in marks: by default the host,
  /// with the port where the URL states another than the scheme's.
  OutgoingCall(std::string_view scheme, std::string_view host, std::optional<unsigned> port, std::string_view path,
               std::string_view service = {});
  explicit OutgoingCall(const CallTarget& target);

  /// Lets the headers carry the lineage, or nothing of ours where the host may not get it.
  void Outfit(Headers& headers) const;
  void Answered(int status, std::optional<std::string_view> lineage);
  /// The service itself has answered, with success or its own error, and without a lineage.
  void AnsweredWithout(bool success);
  void Failed();
  /// Whether a call that does not end leaves a mark: who is called may take part, and the request has a scope.
  [[nodiscard]] bool MayBeInDoubt() const;

 private:
  void Begin(const std::vector<std::pair<std::string, std::optional<unsigned>>>& hosts, std::string_view path);
  [[nodiscard]] std::optional<bool> TakesPart() const;
  void Merge(std::string_view text);
  void Mark();

  std::string service_;
  std::string peer_;
  std::shared_ptr<Scope> scope_;
  std::string text_;
  bool allowed_ = true;
  Answers expected_ = Answers::kAuto;
};

/// Forgets how services answer.
ANTIPODE_EXPORT void ForgetServices();

}  // namespace antipode
