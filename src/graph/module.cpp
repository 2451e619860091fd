#include "graph/module.h"

#include <algorithm>

namespace aglow {

namespace {

// The name itself, or with the first free suffix. `taken` counts the suffixes given out for a name, so that long runs
// of one name stay cheap.
std::string uniqueName(std::unordered_map<std::string, int>& taken, std::string_view wanted) {
  std::string name(wanted.empty() ? "v" : wanted);
  const auto [it, fresh] = taken.try_emplace(name, 0);
  if (fresh) return name;
  while (true) {
    std::string candidate = name + "." + std::to_string(++it->second);
    if (taken.try_emplace(candidate, 0).second) return candidate;
  }
}

}  // namespace

Function::~Function() {
  for (const auto& node : nodes_) node->dropOperands();
}

Node* Function::add(Attrs attrs, std::vector<Type> types, const std::vector<Value>& inputs, std::string_view name,
                    Node* before) {
  const std::string_view wanted = name.empty() ? attrs.op().name : name;
  auto node = std::make_unique<Node>(std::move(attrs), std::move(types), uniqueName(names_, wanted));
  node->function_ = this;
  node->inputs_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) node->link(static_cast<int>(i), inputs[i]);
  const auto at = before == nullptr ? nodes_.end() : before->position_;
  Node* raw = node.get();
  raw->position_ = nodes_.insert(at, std::move(node));
  return raw;
}

void Function::erase(Node* node) {
  AGLOW_CHECK(node->uses().empty(), "erasing node '" + node->name() + "' that is still used");
  node->dropOperands();
  names_.erase(node->name());
  nodes_.erase(node->position_);
}

void Function::move(Node* node, Node* before) {
  nodes_.splice(before == nullptr ? nodes_.end() : before->position_, nodes_, node->position_);
}

Node* Function::next(const Node* node) const {
  const auto it = std::next(node->position_);
  return it == nodes_.end() ? nullptr : it->get();
}

Node* Function::previous(const Node* node) const {
  return node->position_ == nodes_.begin() ? nullptr : std::prev(node->position_)->get();
}

std::vector<Node*> Function::saves() const {
  std::vector<Node*> found;
  for (const auto& node : nodes_)
    if (node->op() == Op::Save) found.push_back(node.get());
  return found;
}

void replaceAllUses(Value from, Value to) {
  AGLOW_CHECK(from.type() == to.type(), "replacing a " + from.type().text() + " by a " + to.type().text());
  const std::vector<Use> uses = from.node->uses();
  for (const Use& use : uses) {
    const Value used = use.slot == Use::kPredicate ? use.user->predicate() : use.user->input(use.slot);
    if (used != from) continue;
    if (use.slot == Use::kPredicate)
      use.user->setPredicate(to);
    else
      use.user->setInput(use.slot, to);
  }
}

Module::~Module() { functions_.clear(); }

Function* Module::addFunction(std::string name) {
  functions_.push_back(std::make_unique<Function>(*this, std::move(name)));
  return functions_.back().get();
}

Function* Module::findFunction(std::string_view name) const {
  for (const auto& function : functions_)
    if (function->name() == name) return function.get();
  return nullptr;
}

void Module::eraseFunction(Function* function) {
  std::erase_if(functions_, [&](const auto& f) { return f.get() == function; });
}

template <class T>
T* Module::addStorage(std::unique_ptr<T> node) {
  T* raw = node.get();
  raw->position_ = storage_.insert(storage_.end(), std::move(node));
  storageByName_[raw->name()] = raw;
  return raw;
}

Constant* Module::addConstant(std::string_view name, Tensor tensor) {
  return addStorage(
      std::make_unique<Constant>(uniqueName(storageNames_, name.empty() ? "c" : name), std::move(tensor)));
}

Placeholder* Module::addPlaceholder(std::string_view name, Type type) {
  return addStorage(std::make_unique<Placeholder>(uniqueName(storageNames_, name), std::move(type)));
}

Placeholder* Module::addState(std::string_view name, Tensor initial) {
  return addStorage(std::make_unique<Placeholder>(uniqueName(storageNames_, name), std::move(initial)));
}

Node* Module::findStorage(std::string_view name) const {
  const auto it = storageByName_.find(std::string(name));
  return it == storageByName_.end() ? nullptr : it->second;
}

std::vector<Placeholder*> Module::placeholders() const {
  std::vector<Placeholder*> found;
  for (const auto& node : storage_)
    if (node->op() == Op::Placeholder) found.push_back(static_cast<Placeholder*>(node.get()));
  return found;
}

std::vector<Constant*> Module::constants() const {
  std::vector<Constant*> found;
  for (const auto& node : storage_)
    if (node->op() == Op::Constant) found.push_back(static_cast<Constant*>(node.get()));
  return found;
}

void Module::eraseStorage(Node* node) {
  AGLOW_CHECK(node->isStorage() && node->uses().empty(), "erasing storage '" + node->name() + "' that is still used");
  storageNames_.erase(node->name());
  storageByName_.erase(node->name());
  storage_.erase(node->position_);
}

Constant* Module::freeze(Placeholder* placeholder, Tensor value) {
  AGLOW_CHECK(placeholder->type() == value.type(), "freezing '" + placeholder->name() + "' with another type");
  for (const Use& use : placeholder->uses())
    AGLOW_CHECK(use.user->op() != Op::Save || use.slot == 0, "freezing '" + placeholder->name() + "' that is written");
  Constant* constant = addConstant(placeholder->name(), std::move(value));
  takePlace(placeholder, constant);
  return constant;
}

Placeholder* Module::thaw(Constant* constant) {
  Placeholder* state = addState(constant->name(), constant->tensor());
  takePlace(constant, state);
  return state;
}

void Module::takePlace(Node* old, Node* storage) {
  const std::string name = old->name();
  replaceAllUses(old->result(), storage->result());
  eraseStorage(old);
  // While both stood there the new one had a suffix.
  storageByName_.erase(storage->name());
  storageNames_.erase(storage->name());
  storage->name_ = uniqueName(storageNames_, name);
  storageByName_[storage->name()] = storage;
}

Node* cloneNode(const Node& node, const std::vector<Value>& inputs, Value predicate, Function& into, Node* before) {
  Node* copy = into.add(node.attrs(), node.types(), inputs, node.name(), before);
  if (predicate) copy->setPredicate(predicate);
  return copy;
}

Function* Module::clone(const Function& function, std::string name) {
  Function* copy = addFunction(std::move(name));
  std::unordered_map<const Node*, Node*> map;
  const auto mapped = [&](Value v) {
    if (!v || v.node->isStorage()) return v;
    return Value{map.at(v.node), v.index};
  };
  for (const auto& node : function.nodes()) {
    std::vector<Value> inputs = node->inputs();
    std::transform(inputs.begin(), inputs.end(), inputs.begin(), mapped);
    map[node.get()] = cloneNode(*node, inputs, mapped(node->predicate()), *copy);
  }
  return copy;
}

namespace {

// Those with a use in the function that fits.
template <class Fits>
std::vector<Placeholder*> placeholdersIn(const Function& function, bool state, Fits&& fits) {
  std::vector<Placeholder*> found;
  for (Placeholder* p : function.module().placeholders()) {
    const bool used = std::any_of(p->uses().begin(), p->uses().end(), [&](const Use& use) {
      return use.user->function() == &function && fits(use.user->op() == Op::Save && use.slot == 1);
    });
    if (used && p->isState() == state) found.push_back(p);
  }
  return found;
}

}  // namespace

std::vector<Placeholder*> inputsOf(const Function& function) {
  return placeholdersIn(function, false, [](bool write) { return !write; });
}
std::vector<Placeholder*> outputsOf(const Function& function) {
  return placeholdersIn(function, false, [](bool write) { return write; });
}
std::vector<Placeholder*> statesOf(const Function& function) {
  return placeholdersIn(function, true, [](bool) { return true; });
}

}  // namespace aglow
