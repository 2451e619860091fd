// The rules of plans. A file may hold any, so nothing is taken for granted.
#include "inst/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "inst/chain.h"
#include "inst/fused.h"
#include "inst/verifier.h"
#include "support/quote.h"
#include "support/sizes.h"

namespace aglow {

namespace {

Error bad(std::string message) { return {.code = Code::BadVerify, .message = std::move(message)}; }

// A word of the text form.
bool isName(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto fits = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  return !name.empty() && letter(name.front()) && std::all_of(name.begin(), name.end(), fits);
}

Status checkEpilogue(const Program& program, const Instr& instr, std::span<const int64_t> view) {
  const int64_t elements = program[bodyOf(instr).front().results()[0].region].type.elements();
  std::optional<int64_t> product = 1;
  for (const int64_t extent : view) {
    if (extent < 0) return bad(fmt::format("the epilogue's view has an extent of {}", extent));
    if (product) product = checkedMul(*product, extent);
  }
  if (product == elements) return {};
  return bad(fmt::format("the epilogue's view [{}] does not have the {} elements of the result", fmt::join(view, ", "),
                         elements));
}

// Working memory comes with placement at the latest, and then it is what the plan says.
Status checkScratch(const Program& program, const Instr& instr, int64_t bytes) {
  const auto isScratch = [](const Operand& operand) { return operand.access == Access::Scratch; };
  const auto first = std::find_if(instr.operands.begin(), instr.operands.end(), isScratch);
  const auto count = std::count_if(first, instr.operands.end(), isScratch);
  if (count == 0 && (bytes == 0 || !program.placed())) return {};
  if (count > 1) return bad(fmt::format("{} regions of working memory, a plan has at most one", count));
  const int64_t given = count == 0 || first->region == kNoRegion ? 0 : program[first->region].type.bytes();
  if (count == 1 && bytes > 0 && given == bytes) return {};
  return bad(fmt::format("{} bytes of working memory, its plan says {}", given, bytes));
}

}  // namespace

Status verifyPlan(const Program& program, const Instr& instr) {
  if (!instr.plan) return {};
  const Plan& plan = *instr.plan;
  if (!isName(plan.kernel)) return bad(fmt::format("{} is not the name of a kernel", quoted(plan.kernel)));
  for (const Refusal& refusal : plan.refused) {
    if (!isName(refusal.kernel)) return bad(fmt::format("{} is not the name of a kernel", quoted(refusal.kernel)));
    if (refusal.reason.empty()) return bad(fmt::format("{} was refused without a reason", refusal.kernel));
  }
  if (plan.units < 0) return bad(fmt::format("{} units of work", plan.units));
  if (plan.scratchBytes < 0) return bad(fmt::format("{} bytes of working memory", plan.scratchBytes));
  if (plan.isLoops() && plan.epilogue) return bad("loops have no epilogue");
  if (plan.epilogue) AGLOW_OK(checkEpilogue(program, instr, *plan.epilogue));
  if (plan.cut) AGLOW_OK(checkCut(program, instr));
  return checkScratch(program, instr, plan.scratchBytes);
}

}  // namespace aglow
