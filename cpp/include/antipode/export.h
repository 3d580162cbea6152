#pragma once

/// Marks what the libraries show; everything else is hidden.
#define ANTIPODE_EXPORT __attribute__((visibility("default")))
