// The functions of llvm/ for programs that load the module.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/auxv.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <new>

#include "backends/cpu/module/table.h"

namespace aglow::codegen {

extern const char* const kCodeHash;

namespace {

namespace fs = std::filesystem;

// Of the program or library that this is part of.
fs::path ownFolder() {
  constexpr uintptr_t kPage = 4096;
  Dl_info info{};
  std::error_code fault;
  if (::dladdr(reinterpret_cast<const void*>(&ownFolder), &info) == 0) return {};
  // A program's name there is what it was called by.
  const bool program = getauxval(AT_PHDR) / kPage == reinterpret_cast<uintptr_t>(info.dli_fbase) / kPage;
  const fs::path file = program ? fs::read_symlink("/proc/self/exe", fault) : fs::path(info.dli_fname);
  return fs::weakly_canonical(file, fault).parent_path();
}

// LLVM's library allocates while it is loaded, where a failure would end the process: as much is asked for first.
bool hasMemoryToLoad() {
  constexpr size_t kBytes = size_t{16} << 20;
  const std::unique_ptr<std::byte[]> probe(new (std::nothrow) std::byte[kBytes]);
  return probe != nullptr;
}

// Where the module may lie: beside this program or library, in the folder of either's prefix, or in the package of some
// Python whose programs lie here.
std::vector<fs::path> places() {
  const fs::path own = ownFolder(), above = own / "..";
  std::vector<fs::path> found = {own, own / AGLOW_MODULE_FOLDER, own / "aglow", above / "aglow"};
  std::error_code fault;
  for (const char* libraries : {"lib", "lib64"})
    for (const fs::directory_entry& entry : fs::directory_iterator(above / libraries, fault))
      if (entry.path().filename().string().starts_with("python3"))
        for (const char* packages : {"site-packages", "dist-packages"})
          found.push_back(entry.path() / packages / "aglow");
  return found;
}

Result<const ModuleTable*> load() {
  constexpr const char* kName = "aglow_llvm.so";
  const auto refused = [](std::string why) {
    return Error{.code = why.find("memory") != std::string::npos ? Code::OutOfMemory : Code::FileRead,
                 .message = fmt::format("the code generator cannot be loaded: {}", why),
                 .where = {},
                 .hint = "it belongs beside the program; packages run without it"};
  };
  if (!hasMemoryToLoad()) return refused("there is no memory left");
  std::string why;
  for (const fs::path& folder : places()) {
    void* module = ::dlopen((folder / kName).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (module == nullptr) {
      const char* words = ::dlerror();
      std::error_code ignored;
      if (why.empty() || fs::exists(folder / kName, ignored)) why = words == nullptr ? "no reason is given" : words;
      continue;
    }
    const auto* table = static_cast<const ModuleTable*>(::dlsym(module, "aglow_module_table"));
    if (table != nullptr && std::strcmp(table->codeHash, kCodeHash) == 0) return table;
    why = (folder / kName).string() + " belongs to another build";
    ::dlclose(module);  // the right one may lie elsewhere
  }
  return refused(why);
}

// Stays loaded. What failed once may be there later.
Result<const ModuleTable*> theModule() {
  static std::atomic<const ModuleTable*> found = nullptr;
  if (const ModuleTable* table = found.load()) return table;
  AGLOW_TRY(const ModuleTable* table, load());
  found.store(table);
  return table;
}

// For whoever has a target, which the module gave.
const ModuleTable& table() {
  const Result<const ModuleTable*> found = theModule();
  AGLOW_CHECK(found.ok(), "the code generator went away");
  return **found;
}

}  // namespace

Result<Target> Target::create(const TargetOptions& options) {
  AGLOW_TRY(const ModuleTable* module, theModule());
  return module->createTarget(options);
}

Result<std::vector<std::string>> generateObjects(std::span<const Program> programs, std::span<const MemoryMap> memory,
                                                 const Target& target, const CodeOptions& options,
                                                 const SideBySide& sideBySide) {
  return table().generateObjects(programs, memory, target, options, sideBySide);
}

std::string entryName(const CodeOptions& options, size_t program) { return table().entryName(options, program); }

Result<std::vector<std::string>> generateBundle(const Bundle& bundle, const Target& target,
                                                std::span<const CodeFile> files) {
  return table().generateBundle(bundle, target, files);
}

std::vector<std::string> checkedFeatures(const Target& target) { return table().checkedFeatures(target); }
std::vector<std::string> missingFeatures(const Target& target) { return table().missingFeatures(target); }

Result<LoadedCode> loadObjects(const std::vector<std::string>& objects, const std::vector<std::string>& names,
                               bool named) {
  return table().loadObjects(objects, names, named);
}

}  // namespace aglow::codegen
