// What a shim and its instrumented clients share.
#pragma once

#include "antipode/rabbitmq.h"

namespace antipode::rabbitmq {

struct Shim::Inside {
  const Options& options;
};

}  // namespace antipode::rabbitmq
