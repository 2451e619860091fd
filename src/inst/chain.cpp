#include "inst/chain.h"

#include <fmt/format.h>

#include "inst/rows.h"
#include "support/quote.h"
#include "support/sizes.h"

namespace aglow {

size_t chainEnd(std::span<const Instr> instrs, size_t first) {
  size_t end = first + 1;
  while (end < instrs.size() && instrs[end].chained) ++end;
  return end;
}

size_t groupEnd(std::span<const Instr> instrs, size_t first) {
  const size_t chain = chainEnd(instrs, first);
  return chain > first + 1 ? chain : besideEnd(instrs, first);
}

Status checkCut(const Program& program, const Instr& instr) {
  const auto bad = [](std::string message) { return Error{.code = Code::BadVerify, .message = std::move(message)}; };
  if (!instr.computes() || !instr.plan || !instr.plan->cut)
    return bad("only an operator whose plan has a cut goes part by part");
  const Cut& cut = *instr.plan->cut;
  if (cut.outer.size() != instr.operands.size())
    return bad(fmt::format("the cut is one of {} operands, found {}", cut.outer.size(), instr.operands.size()));
  const std::optional<int64_t> count = checkedMul(cut.images, cut.parts);
  if (!count || *count < 1) return bad(fmt::format("a cut into {} by {} parts", cut.images, cut.parts));
  if (instr.predicate != kNoRegion) {
    const int64_t rows = predicateRows(program, instr);
    if (rows == 0 || (*count % rows != 0 && rows % *count != 0))
      return bad(
          fmt::format("only an operator without a predicate, or with one for its rows, goes in {} parts", *count));
  }
  for (size_t i = 0; i < cut.outer.size(); ++i) {
    const Operand& operand = instr.operands[i];
    if (operand.region == kNoRegion || cut.outer[i] == 0) {
      if (cut.outer[i] != 0) return bad("an operand that is absent is cut");
      if (operand.region != kNoRegion && (operand.access == Access::Out || operand.access == Access::InOut))
        return bad(fmt::format("{} is written, but not cut", quoted(program[operand.region].name)));
      continue;
    }
    const std::optional<int64_t> slices = checkedMul(*count, cut.outer[i]);
    if (!slices || program[operand.region].type.bytes() % *slices != 0)
      return bad(fmt::format("{} bytes of {} do not fall into {} by {} by {} even parts",
                             program[operand.region].type.bytes(), quoted(program[operand.region].name), cut.images,
                             cut.outer[i], cut.parts));
  }
  return {};
}

bool partByPart(std::span<const Extent> extents, const Instr& a, const Instr& b) {
  const Cut &mine = *a.plan->cut, &other = *b.plan->cut;
  if (mine.images != other.images || mine.parts != other.parts) return false;
  for (size_t i = 0; i < a.operands.size(); ++i)
    for (size_t j = 0; j < b.operands.size(); ++j) {
      const Operand &x = a.operands[i], &y = b.operands[j];
      if (x.region == kNoRegion || y.region == kNoRegion || !(writes(x.access) || writes(y.access))) continue;
      const Extent &xs = extents[static_cast<size_t>(x.region)], &ys = extents[static_cast<size_t>(y.region)];
      if (xs.overlaps(ys) && (xs != ys || mine.outer[i] != other.outer[j] || mine.outer[i] == 0)) return false;
    }
  return true;
}

}  // namespace aglow
