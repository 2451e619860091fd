// The table of passes. Working memory first, then what takes copies away, then those that share what is left.
#include "memory/pass_table.h"

#include <fmt/format.h>

#include "inst/beside.h"
#include "memory/passes.h"
#include "memory/place.h"

namespace aglow {

namespace {

constexpr MemoryPass kPasses[] = {
    {"scratch", "gives instructions the working memory that their plans ask for", addScratch, true},
    {"moves", "turns slices, transposes and concatenations that are whole stretches into copies", movesToCopies},
    {"copies", "removes copies: values are computed where they go, or read where they are", removeCopies},
    {"in-place", "lets results overwrite operands that nobody needs afterwards", shareInPlace},
    {"dead-stores", "removes instructions whose results nobody reads", removeDeadStores},
    {"beside", "lets independent instructions run at the same time", putBeside},
    {"lifetimes", "allocates as late and gives back as early as can be", tightenLifetimes},
    {"place", "gives every buffer its offset in one arena", placeArena, true},
};

}  // namespace

std::span<const MemoryPass> memoryPasses() { return kPasses; }

Status runMemoryPasses(Program& program, const MemoryOptions& options) {
  AGLOW_OK(checkSizes(program));
  // Passes that share buffers go by the order of instructions alone.
  forgetBeside(program);
  for (const MemoryPass& pass : kPasses) {
    const bool wanted = !options.before || options.before(pass);
    if (!wanted && !pass.required) continue;
    auto changed = pass.run(program);
    if (!changed.ok()) return std::move(changed).error().at(fmt::format("pass '{}'", pass.name));
    if (!options.after) continue;
    AGLOW_TRY(const bool goOn, options.after(pass, program, *changed));
    if (!goOn) return {};
  }
  return {};
}

}  // namespace aglow
