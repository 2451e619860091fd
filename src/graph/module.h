// Module -> Functions -> Nodes. Constants and placeholders belong to the module and are shared by its functions.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/node.h"

namespace aglow {

// A list of nodes, each before its users. Names are unique within a function.
class Function {
public:
  using NodeList = std::list<std::unique_ptr<Node>>;

  Function(Module& module, std::string name) : module_(&module), name_(std::move(name)) {}
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  Module& module() const { return *module_; }
  const std::string& name() const { return name_; }
  const NodeList& nodes() const { return nodes_; }
  size_t size() const { return nodes_.size(); }

  // Adds a node before another one, or at the end. Types are taken as they are; Builder infers them.
  Node* add(Attrs attrs, std::vector<Type> types, const std::vector<Value>& inputs, std::string_view name,
            Node* before = nullptr);
  // Removes a node that nobody uses.
  void erase(Node* node);
  // Moves a node to stand before another one, or to the end.
  void move(Node* node, Node* before);
  // Neighbours in the list, or null.
  Node* front() const { return nodes_.empty() ? nullptr : nodes_.front().get(); }
  Node* back() const { return nodes_.empty() ? nullptr : nodes_.back().get(); }
  Node* next(const Node* node) const;
  Node* previous(const Node* node) const;

  // The Save nodes, in order.
  std::vector<Node*> saves() const;

private:
  friend class Module;

  Module* module_;
  std::string name_;
  NodeList nodes_;
  std::unordered_map<std::string, int> names_;
};

// Every use of `from` reads `to` instead, in all functions. The types agree.
void replaceAllUses(Value from, Value to);

class Module {
public:
  Module() = default;
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Function* addFunction(std::string name);
  const std::vector<std::unique_ptr<Function>>& functions() const { return functions_; }
  Function* findFunction(std::string_view name) const;
  void eraseFunction(Function* function);

  // Names of storage are unique within the module; a taken one gets a suffix.
  Constant* addConstant(std::string_view name, Tensor tensor);
  Placeholder* addPlaceholder(std::string_view name, Type type);
  Placeholder* addState(std::string_view name, Tensor initial);
  const std::list<std::unique_ptr<Node>>& storage() const { return storage_; }
  Node* findStorage(std::string_view name) const;
  std::vector<Placeholder*> placeholders() const;
  std::vector<Constant*> constants() const;
  void eraseStorage(Node* node);  // that nobody uses

  // Makes a placeholder's value part of the program, for instance a weight after training. No function may write it.
  Constant* freeze(Placeholder* placeholder, Tensor value);
  // The other way: a constant becomes state that begins with its bytes, for instance a weight before training.
  Placeholder* thaw(Constant* constant);

  // A copy of a function in this module; storage is shared.
  Function* clone(const Function& function, std::string name);

private:
  template <class T>
  T* addStorage(std::unique_ptr<T> node);
  // Storage is used instead of the old one, which goes, and carries its name.
  void takePlace(Node* old, Node* storage);

  std::list<std::unique_ptr<Node>> storage_;
  std::unordered_map<std::string, int> storageNames_;
  std::unordered_map<std::string, Node*> storageByName_;
  std::vector<std::unique_ptr<Function>> functions_;  // last: their nodes use the storage
};

// Placeholders that callers bind: those that a function reads, and those that it writes, in the module's order.
std::vector<Placeholder*> inputsOf(const Function& function);
std::vector<Placeholder*> outputsOf(const Function& function);
// State that a function reads or writes.
std::vector<Placeholder*> statesOf(const Function& function);

// A copy of one node with other operands, at the end of a function or before a node.
Node* cloneNode(const Node& node, const std::vector<Value>& inputs, Value predicate, Function& into,
                Node* before = nullptr);

}  // namespace aglow
