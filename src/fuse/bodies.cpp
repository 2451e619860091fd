// Growth of bodies: a consumer joins the bodies of its producers, the nearest first.
#include "fuse/bodies.h"

#include <algorithm>
#include <unordered_map>

#include "fuse/fit.h"

namespace aglow {

Bodies::Bodies(const Program& program, const Dependences& dependences, const FusePolicy& policy)
    : program_(program), dependences_(dependences), policy_(policy) {
  const auto count = static_cast<int32_t>(program.instrs.size());
  bodies_.resize(program.instrs.size());
  for (int32_t at = 0; at < count; ++at) {
    bodyOf_.push_back(at);
    roles_.push_back(roleOf(at));
    body(at) = {.steps = {at}, .place = at, .window = dependences.window(at)};
    body(at).anchored = roles_.back() == Role::Anchor;
  }
  noteReaders();
  for (int32_t at = 0; at < count; ++at) place(at);
}

void Bodies::noteReaders() {
  reader_.assign(program_.regions.size(), Dependences::kNone);
  reduced_.assign(program_.regions.size(), false);
  for (int32_t at = 0; at < static_cast<int32_t>(program_.instrs.size()); ++at) {
    const bool step = roles_[static_cast<size_t>(at)] == Role::Step;
    int32_t latest = step ? Dependences::kNone : at;
    forEachRead(instr(at), [&](RegionId region) {
      reader_[static_cast<size_t>(region)] = dependences_.reads(region) == 1 ? at : Dependences::kNone;
      if (step && !instr(at).attrs.op().isDataParallel()) reduced_[static_cast<size_t>(region)] = true;
      if (const int32_t from = dependences_.producer(region); from != Dependences::kNone)
        latest = std::max(latest, latest_[static_cast<size_t>(from)]);
    });
    latest_.push_back(latest);
  }
}

const Bodies::Body* Bodies::at(int32_t place) const {
  const Body& found = body(bodyOf(place));
  return found.place == place ? &found : nullptr;
}

Bodies::Role Bodies::roleOf(int32_t at) const {
  const Instr& i = instr(at);
  if (i.kind != Instr::Kind::Compute || !dependences_.movable(at)) return Role::Alone;
  const std::span<const Operand> results = i.results();
  // What nobody reads, and what has no elements, would only make bodies longer.
  const auto idle = [&](const Operand& result) {
    if (result.region == kNoRegion) return true;
    if (program_[dependences_.extent(result.region).root].as<Allocated>() == nullptr) return false;
    return dependences_.reads(dependences_.extent(result.region).root) == 0 ||
           program_[result.region].type.bytes() == 0;
  };
  if (std::all_of(results.begin(), results.end(), idle)) return Role::Alone;
  if (i.attrs.op().isDataParallel() || reducedRow(program_, i) > 1)
    return policy_.takes(program_, i) ? Role::Step : Role::Alone;
  return policy_.takesEpilogue(program_, i) ? Role::Anchor : Role::Alone;
}

void Bodies::place(int32_t at) {
  if (roles_[static_cast<size_t>(at)] == Role::Step) {
    std::vector<int32_t> producers;
    forEachRead(instr(at), [&](RegionId region) {
      if (const int32_t from = dependences_.producer(region); from != Dependences::kNone)
        producers.push_back(bodyOf(from));
    });
    const auto later = [&](int32_t a, int32_t b) { return body(a).place > body(b).place; };
    std::sort(producers.begin(), producers.end(), later);
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    if (!widensForLater(at))
      for (const int32_t producer : producers) merge(producer, bodyOf(at));
  }
  forEachRead(instr(at), [&](RegionId region) { noteUse(region, body(bodyOf(at)).place, bodyOf(at)); });
}

bool Bodies::widensForLater(int32_t at) const {
  const std::span<const Operand> inputs = instr(at).inputs();
  if (!instr(at).attrs.op().isDataParallel() || inputs.size() != 1) return false;
  const Type &narrow = program_[inputs[0].region].type, &wide = program_[instr(at).results()[0].region].type;
  const int32_t from = dependences_.producer(inputs[0].region);
  if (from == Dependences::kNone || narrow.bytes() >= wide.bytes() || narrow.shape() != wide.shape()) return false;
  const Body& source = body(bodyOf(from));
  if (!source.anchored && dependences_.reads(dependences_.extent(inputs[0].region).root) == 1) return false;
  // Through steps that read nothing else to one that does.
  for (size_t steps = 0; steps < kMostSteps; ++steps) {
    const auto result = static_cast<size_t>(instr(at).results()[0].region);
    if (source.anchored && reduced_[result]) return true;
    const int32_t reader = reader_[result];
    if (reader == Dependences::kNone || roles_[static_cast<size_t>(reader)] != Role::Step) return false;
    bool later = false;
    forEachRead(instr(reader), [&](RegionId region) {
      const int32_t other = dependences_.producer(region);
      later =
          later || (other != Dependences::kNone && other != at && latest_[static_cast<size_t>(other)] > source.place);
    });
    if (later) return true;
    at = reader;
  }
  return false;
}

void Bodies::noteUse(RegionId region, int32_t place, int32_t by) {
  const int32_t from = dependences_.producer(region);
  if (from == Dependences::kNone || bodyOf(from) == by) return;
  Body& used = body(bodyOf(from));
  used.firstUse = std::min(used.firstUse, place);
  used.lastUse = std::max(used.lastUse, place);
}

bool Bodies::merge(int32_t a, int32_t b) {
  if (a == b) return false;
  const int32_t earlier = body(a).place < body(b).place ? a : b, later = earlier == a ? b : a;
  Body &above = body(earlier), &below = body(later);
  const auto joins = [&](const Body& g) { return roles_[static_cast<size_t>(g.steps.front())] != Role::Alone; };
  if (!joins(above) || !joins(below) || above.steps.size() + below.steps.size() > kMostSteps) return false;
  if (instr(above.steps.front()).predicate != instr(below.steps.front()).predicate) return false;
  if (above.anchored && below.anchored) return false;

  const bool down = above.firstUse >= below.place && above.window.before > below.place;
  if (!down && !canMoveUp(below, above.place, earlier)) return false;
  if (readsThroughViews(below, earlier)) return false;
  std::vector<int32_t> steps = joined(above, below);
  if (!runsAsOne(steps)) return false;
  if (above.anchored != below.anchored && !extends(above.anchored ? above : below, above.anchored ? below : above))
    return false;

  Body merged{.steps = std::move(steps), .place = down ? below.place : above.place};
  // If the body below is all that is known to need the one above, others may only come later.
  if (down && above.firstUse == below.place)
    above.firstUse = above.lastUse > below.place ? below.place + 1 : Dependences::kEnd;
  merged.firstUse = std::min(above.firstUse, below.firstUse);
  merged.lastUse = std::max(above.lastUse, below.lastUse);
  merged.window = {std::max(above.window.after, below.window.after),
                   std::min(above.window.before, below.window.before)};
  merged.anchored = above.anchored || below.anchored;
  for (const int32_t step : merged.steps) bodyOf_[static_cast<size_t>(step)] = earlier;
  body(earlier) = std::move(merged);
  body(later) = {};
  if (!down)
    for (const int32_t step : body(earlier).steps)
      forEachRead(instr(step), [&](RegionId region) { noteUse(region, body(earlier).place, earlier); });
  return true;
}

bool Bodies::canMoveUp(const Body& moved, int32_t place, int32_t beside) const {
  if (moved.window.after >= place) return false;
  bool ready = true;
  for (const int32_t step : moved.steps)
    forEachRead(instr(step), [&](RegionId region) {
      const int32_t from = dependences_.producer(region);
      if (from == Dependences::kNone || bodyOf(from) == beside || bodyOf(from) == bodyOf(step)) return;
      ready = ready && body(bodyOf(from)).place < place;
    });
  return ready;
}

// Inside of a body values have one shape each; under another one they are read from memory.
bool Bodies::readsThroughViews(const Body& reader, int32_t from) const {
  bool found = false;
  for (const int32_t step : reader.steps)
    forEachRead(instr(step), [&](RegionId region) {
      const int32_t producer = dependences_.producer(region);
      if (producer == Dependences::kNone || bodyOf(producer) != from) return;
      const std::span<const Operand> results = instr(producer).results();
      found =
          found || std::none_of(results.begin(), results.end(), [&](const Operand& r) { return r.region == region; });
    });
  return found;
}

std::vector<int32_t> Bodies::joined(const Body& a, const Body& b) const {
  std::vector<int32_t> steps;
  const int firstOfA = a.anchored ? 1 : 0, firstOfB = b.anchored ? 1 : 0;
  if (a.anchored) steps.push_back(a.steps.front());
  if (b.anchored) steps.push_back(b.steps.front());
  std::merge(a.steps.begin() + firstOfA, a.steps.end(), b.steps.begin() + firstOfB, b.steps.end(),
             std::back_inserter(steps));
  return steps;
}

bool Bodies::runsAsOne(const std::vector<int32_t>& steps) const {
  std::vector<const Instr*> instrs;
  for (const int32_t step : steps) instrs.push_back(&instr(step));
  const Result<BodyForm> form = formOf(program_, instrs);
  return form.ok() && (!form->reduces() || keptBytes(program_, *form, instrs) <= policy_.rowBytes()) &&
         operandCount(instrs) <= policy_.mostOperands();
}

size_t Bodies::operandCount(const std::vector<const Instr*>& steps) const {
  std::unordered_map<RegionId, int32_t> reads;
  for (const Instr* step : steps)
    for (const Operand& operand : step->inputs())
      if (operand.region != kNoRegion) ++reads[operand.region];
  size_t local = 0;
  for (const Instr* step : steps)
    forEachResult(*step, [&](RegionId result) {
      const int32_t inside = reads[result];
      if (program_[result].as<Allocated>() != nullptr && inside > 0 && inside == dependences_.reads(result)) ++local;
    });
  return reads.size() - local;
}

bool Bodies::extends(const Body& anchored, const Body& other) const {
  const Instr& anchor = instr(anchored.steps.front());
  bool apart = true;
  forEachRead(anchor, [&](RegionId region) {
    const int32_t from = dependences_.producer(region);
    apart = apart && (from == Dependences::kNone || bodyOf(from) != bodyOf(other.steps.front()));
  });
  return apart && std::all_of(other.steps.begin(), other.steps.end(), [&](int32_t step) {
           return static_cast<bool>(policy_.joins(program_, anchor, instr(step)));
         });
}

}  // namespace aglow
