// What emitters share: functions, loops, views.
#include "backends/cpu/llvm/steps.h"

#include <llvm/IR/MDBuilder.h>

namespace aglow::codegen {

llvm::Function* EmitContext::newStep(const std::string& name) const {
  llvm::LLVMContext& c = module.getContext();
  llvm::Type* i64 = llvm::Type::getInt64Ty(c);
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(c), {llvm::PointerType::get(c, 0), i64, i64}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  setTargetAttributes(*function, target);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  // Called once or a thousand times: what calls it stays a list of calls.
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(kStepAttribute);
  // Threads of a host program call steps, too, and some conventions count on it.
  function->addRetAttr(llvm::Attribute::SExt);
  llvm::BasicBlock::Create(c, "entry", function);
  return function;
}

llvm::Value* addressSlot(llvm::IRBuilder<>& b, llvm::Value* addresses, int slot) {
  llvm::Type* pointer = b.getPtrTy();
  return b.CreateLoad(pointer, b.CreateConstInBoundsGEP1_64(pointer, addresses, static_cast<uint64_t>(slot)));
}

llvm::Value* emitLoop(llvm::IRBuilder<>& b, llvm::Value* begin, llvm::Value* end, int64_t step,
                      llvm::function_ref<void(llvm::Value*)> body) {
  llvm::LLVMContext& c = b.getContext();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::BasicBlock* head = llvm::BasicBlock::Create(c, "loop", function);
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(c, "body", function);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(c, "after", function);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  llvm::Value* next = b.CreateAdd(i, b.getInt64(static_cast<uint64_t>(step)), "", true, true);
  b.CreateCondBr(b.CreateICmpSLE(next, end), inside, after);
  b.SetInsertPoint(inside);
  body(i);
  i->addIncoming(next, b.GetInsertBlock());
  llvm::BranchInst* back = b.CreateBr(head);
  llvm::Metadata* enable = llvm::MDString::get(c, "llvm.loop.vectorize.enable");
  llvm::Metadata* off = llvm::ConstantAsMetadata::get(b.getFalse());
  std::vector<llvm::Metadata*> entries = {nullptr, llvm::MDNode::get(c, {enable, off})};
  if (step == 1) entries.push_back(llvm::MDNode::get(c, {llvm::MDString::get(c, "llvm.loop.unroll.disable")}));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(c, entries);
  loop->replaceOperandWith(0, loop);
  back->setMetadata(llvm::LLVMContext::MD_loop, loop);
  b.SetInsertPoint(after);
  return i;
}

}  // namespace aglow::codegen
