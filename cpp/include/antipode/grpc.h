/// Lineages with gRPC calls: in their metadata, and back in their trailing metadata, errors included.
///
/// A channel sends the lineage of the scope that is current where a call begins, and merges what comes back before the
/// caller learns of the call's end; stubs of every API, unary calls and streams:
///
///     auto posts = Posts::NewStub(antipode::rpc::CreateChannel("dns:///posts:50051", credentials));
///
/// A server gives each call a separate scope, and answers with what it added:
///
///     builder.experimental().SetInterceptorCreators(
///         antipode::rpc::ServerInterceptors(antipode::rpc::Handlers::kSynchronous));
///
/// The scope is current in synchronous handlers. gRPC does not say on which thread a reaction of the callback API or an
/// event of a completion queue is handled: there each begins with
///
///     const antipode::ScopeGuard request(antipode::rpc::ScopeOf(*context));
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "antipode/export.h"
#include "antipode/scope.h"

namespace antipode::rpc {

using ClientInterceptorFactory = std::unique_ptr<::grpc::experimental::ClientInterceptorFactoryInterface>;
using ServerInterceptorFactory = std::unique_ptr<::grpc::experimental::ServerInterceptorFactoryInterface>;

/// A channel whose calls carry lineages, as `grpc::CreateCustomChannel` makes one. Interceptors of others run as they
/// do without ours.
ANTIPODE_EXPORT std::shared_ptr<::grpc::Channel> CreateChannel(
    const std::string& target, const std::shared_ptr<::grpc::ChannelCredentials>& credentials,
    const ::grpc::ChannelArguments& arguments = {}, std::vector<ClientInterceptorFactory> others = {});

/// The interceptor of such a channel, for one that is made in another way: with its target and its arguments, which
/// say to whom a lineage may go, and whether calls may be sent again. Let it be the last one.
ANTIPODE_EXPORT ClientInterceptorFactory ClientInterceptor(const std::string& target,
                                                           const ::grpc::ChannelArguments& arguments = {});

/// How a server's handlers are written.
enum class Handlers {
  kSynchronous,   ///< The scope of a call is current in its handler.
  kAsynchronous,  ///< Callback API or completion queues: handlers ask for the scope by `ScopeOf`.
};

/// The interceptors of a server: those of others, and ours as the last one.
ANTIPODE_EXPORT std::vector<ServerInterceptorFactory> ServerInterceptors(
    Handlers handlers, std::vector<ServerInterceptorFactory> others = {});

/// The scope of a call that is being served by a server with our interceptor; null on others.
ANTIPODE_EXPORT std::shared_ptr<Scope> ScopeOf(const ::grpc::ServerContextBase& context);

/// For services on completion queues, on a server without our interceptors: the scope of a call that has arrived.
///
///     auto scope = antipode::rpc::Begin(context);                               // once the call has arrived
///     const antipode::ScopeGuard request(scope);                                 // for each event of it
///     antipode::rpc::Answer(context, *scope, Posts::service_full_name());       // before Finish
ANTIPODE_EXPORT std::shared_ptr<Scope> Begin(const ::grpc::ServerContextBase& context);
/// Puts into the trailing metadata what the call added, and ends its scope. `message` is the one of the status to come.
ANTIPODE_EXPORT void Answer(::grpc::ServerContextBase& context, Scope& scope, std::string_view service,
                            std::string_view message = {});

}  // namespace antipode::rpc
