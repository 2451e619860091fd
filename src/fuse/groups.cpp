// Growth of groups: a consumer joins the groups of its producers, the nearest first.
#include "fuse/groups.h"

#include <algorithm>

#include "fuse/fit.h"

namespace aglow {

Groups::Groups(const Program& program, const Dependences& dependences, const FusePolicy& policy)
    : program_(program), dependences_(dependences), policy_(policy) {
  const auto count = static_cast<int32_t>(program.instrs.size());
  groups_.resize(program.instrs.size());
  for (int32_t at = 0; at < count; ++at) {
    groupOf_.push_back(at);
    roles_.push_back(roleOf(at));
    group(at) = {.members = {at}, .place = at, .window = dependences.window(at)};
    group(at).anchored = roles_.back() == Role::Anchor;
  }
  for (int32_t at = 0; at < count; ++at) place(at);
}

const Groups::Group* Groups::at(int32_t place) const {
  const Group& found = group(groupOf(place));
  return found.place == place ? &found : nullptr;
}

Groups::Role Groups::roleOf(int32_t at) const {
  const Instr& i = instr(at);
  if (i.kind != Instr::Kind::Compute || !dependences_.movable(at)) return Role::Alone;
  const std::span<const Operand> results = i.results();
  // What nobody reads, and what has no elements, would only make bodies longer.
  const auto idle = [&](const Operand& result) {
    if (program_[dependences_.extent(result.region).root].as<Allocated>() == nullptr) return false;
    return dependences_.reads(dependences_.extent(result.region).root) == 0 ||
           program_[result.region].type.bytes() == 0;
  };
  if (std::all_of(results.begin(), results.end(), idle)) return Role::Alone;
  if (i.attrs.op().isDataParallel() || reducedRow(program_, i) > 1)
    return policy_.takes(program_, i) ? Role::Member : Role::Alone;
  return policy_.takesEpilogue(program_, i) ? Role::Anchor : Role::Alone;
}

void Groups::place(int32_t at) {
  if (roles_[static_cast<size_t>(at)] == Role::Member) {
    std::vector<int32_t> producers;
    forEachRead(instr(at), [&](RegionId region) {
      if (const int32_t from = dependences_.producer(region); from != Dependences::kNone)
        producers.push_back(groupOf(from));
    });
    const auto later = [&](int32_t a, int32_t b) { return group(a).place > group(b).place; };
    std::sort(producers.begin(), producers.end(), later);
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    for (const int32_t producer : producers) merge(producer, groupOf(at));
  }
  forEachRead(instr(at), [&](RegionId region) { noteUse(region, group(groupOf(at)).place, groupOf(at)); });
}

void Groups::noteUse(RegionId region, int32_t place, int32_t by) {
  const int32_t from = dependences_.producer(region);
  if (from == Dependences::kNone || groupOf(from) == by) return;
  Group& used = group(groupOf(from));
  used.firstUse = std::min(used.firstUse, place);
  used.lastUse = std::max(used.lastUse, place);
}

bool Groups::merge(int32_t a, int32_t b) {
  if (a == b) return false;
  const int32_t earlier = group(a).place < group(b).place ? a : b, later = earlier == a ? b : a;
  Group &above = group(earlier), &below = group(later);
  const auto joins = [&](const Group& g) { return roles_[static_cast<size_t>(g.members.front())] != Role::Alone; };
  if (!joins(above) || !joins(below) || above.members.size() + below.members.size() > kMostMembers) return false;
  if (instr(above.members.front()).predicate != instr(below.members.front()).predicate) return false;
  if (above.anchored && below.anchored) return false;

  const bool down = above.firstUse >= below.place && above.window.before > below.place;
  if (!down && !canMoveUp(below, above.place, earlier)) return false;
  if (readsThroughViews(below, earlier)) return false;
  std::vector<int32_t> members = joined(above, below);
  if (!runsAsOne(members)) return false;
  if (above.anchored != below.anchored && !extends(above.anchored ? above : below, above.anchored ? below : above))
    return false;

  Group merged{.members = std::move(members), .place = down ? below.place : above.place};
  // If the group below is all that is known to need the one above, others may only come later.
  if (down && above.firstUse == below.place)
    above.firstUse = above.lastUse > below.place ? below.place + 1 : Dependences::kEnd;
  merged.firstUse = std::min(above.firstUse, below.firstUse);
  merged.lastUse = std::max(above.lastUse, below.lastUse);
  merged.window = {std::max(above.window.after, below.window.after),
                   std::min(above.window.before, below.window.before)};
  merged.anchored = above.anchored || below.anchored;
  for (const int32_t member : merged.members) groupOf_[static_cast<size_t>(member)] = earlier;
  group(earlier) = std::move(merged);
  group(later) = {};
  if (!down)
    for (const int32_t member : group(earlier).members)
      forEachRead(instr(member), [&](RegionId region) { noteUse(region, group(earlier).place, earlier); });
  return true;
}

bool Groups::canMoveUp(const Group& moved, int32_t place, int32_t beside) const {
  if (moved.window.after >= place) return false;
  bool ready = true;
  for (const int32_t member : moved.members)
    forEachRead(instr(member), [&](RegionId region) {
      const int32_t from = dependences_.producer(region);
      if (from == Dependences::kNone || groupOf(from) == beside || groupOf(from) == groupOf(member)) return;
      ready = ready && group(groupOf(from)).place < place;
    });
  return ready;
}

// Inside of a body values have one shape each; under another one they are read from memory.
bool Groups::readsThroughViews(const Group& reader, int32_t from) const {
  bool found = false;
  for (const int32_t member : reader.members)
    forEachRead(instr(member), [&](RegionId region) {
      const int32_t producer = dependences_.producer(region);
      if (producer == Dependences::kNone || groupOf(producer) != from) return;
      const std::span<const Operand> results = instr(producer).results();
      found =
          found || std::none_of(results.begin(), results.end(), [&](const Operand& r) { return r.region == region; });
    });
  return found;
}

std::vector<int32_t> Groups::joined(const Group& a, const Group& b) const {
  std::vector<int32_t> members;
  const int firstOfA = a.anchored ? 1 : 0, firstOfB = b.anchored ? 1 : 0;
  if (a.anchored) members.push_back(a.members.front());
  if (b.anchored) members.push_back(b.members.front());
  std::merge(a.members.begin() + firstOfA, a.members.end(), b.members.begin() + firstOfB, b.members.end(),
             std::back_inserter(members));
  return members;
}

bool Groups::runsAsOne(const std::vector<int32_t>& members) const {
  std::vector<const Instr*> steps;
  for (const int32_t member : members) steps.push_back(&instr(member));
  const Result<BodyForm> form = formOf(program_, steps);
  return form.ok() && (!form->reduces() || keptBytes(program_, *form, steps) <= policy_.rowBytes());
}

bool Groups::extends(const Group& anchored, const Group& other) const {
  const Instr& anchor = instr(anchored.members.front());
  bool apart = true;
  forEachRead(anchor, [&](RegionId region) {
    const int32_t from = dependences_.producer(region);
    apart = apart && (from == Dependences::kNone || groupOf(from) != groupOf(other.members.front()));
  });
  return apart && std::all_of(other.members.begin(), other.members.end(), [&](int32_t member) {
           return static_cast<bool>(policy_.joins(program_, anchor, instr(member)));
         });
}

}  // namespace aglow
