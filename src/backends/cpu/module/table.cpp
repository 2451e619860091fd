#include "backends/cpu/module/table.h"

namespace aglow::codegen {
extern const char* const kCodeHash;
}

using namespace aglow;

__attribute__((visibility("default"))) const codegen::ModuleTable aglow_module_table = {
    .codeHash = codegen::kCodeHash,
    .createTarget = &codegen::Target::create,
    .generateObjects = &codegen::generateObjects,
    .entryName = &codegen::entryName,
    .generateBundle = &codegen::generateBundle,
    .checkedFeatures = &codegen::checkedFeatures,
    .missingFeatures = &codegen::missingFeatures,
    .loadObjects = &codegen::loadObjects,
};
