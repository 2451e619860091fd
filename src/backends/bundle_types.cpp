#include "backends/bundle_types.h"

namespace aglow {

const char* bundleTypes() {
  return
#include "backends/bundle_types.inc"
      ;
}

}  // namespace aglow
