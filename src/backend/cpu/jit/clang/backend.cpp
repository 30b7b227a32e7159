#include "backend/cpu/jit/clang/backend.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"

namespace oxy::backend::cpu {
namespace {

// Processors fetch code in blocks of so many bytes. A short loop that lies across two of them is slower.
constexpr unsigned kLoopAlignment = 32;  // bytes

// Target machines are costly to make (about 1 ms with the tables of their instruction set) and serve one
// thread at a time: finished ones wait here.
class MachinePool {
 public:
  std::unique_ptr<llvm::TargetMachine> take(const std::string& features) {
    {
      std::lock_guard lock(mutex_);
      auto& idle = idle_[features];
      if (!idle.empty()) {
        auto machine = std::move(idle.back());
        idle.pop_back();
        return machine;
      }
    }
    std::string triple = llvm::sys::getProcessTriple(), error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
    check(target != nullptr, error);
    llvm::TargetOptions options;
    options.LoopAlignment = kLoopAlignment;
    std::unique_ptr<llvm::TargetMachine> machine(
        target->createTargetMachine(triple, "x86-64", features, options, llvm::Reloc::PIC_, std::nullopt,
                                    llvm::CodeGenOptLevel::Default, true));
    check(machine != nullptr, "LLVM has no code generator for this machine");
    return machine;
  }

  void give_back(const std::string& features, std::unique_ptr<llvm::TargetMachine> machine) {
    std::lock_guard lock(mutex_);
    idle_[features].push_back(std::move(machine));
  }

  void clear() {
    std::lock_guard lock(mutex_);
    idle_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>> idle_;
};

MachinePool& machine_pool() {
  static auto* once = new MachinePool;  // never destroyed: threads may compile while the process ends
  return *once;
}

llvm::FunctionPassManager early_cleanup() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  return passes;
}

// Kernels are one function of explicit vector code: what pays is hoisting, folding and removing redundant
// loads. Loops are vectorised where a `#pragma clang loop vectorize(enable)` asks for it, and unrolled fully
// if short.
llvm::FunctionPassManager main_passes() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager hoist;
  hoist.addPass(llvm::LoopRotatePass());
  hoist.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(hoist), true));
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::LoopPassManager shape;
  shape.addPass(llvm::IndVarSimplifyPass());
  shape.addPass(llvm::LoopDeletionPass());
  shape.addPass(llvm::LoopFullUnrollPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(shape)));
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::LoopVectorizePass(llvm::LoopVectorizeOptions(true, true)));
  passes.addPass(llvm::InstCombinePass());
  llvm::LoopPassManager again;
  again.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(again), true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::DCEPass());
  return passes;
}

// The helpers of a kernel's prelude are static: each is inlined unless it says noinline.
void mark_helpers_inline(llvm::Module& module) {
  for (llvm::Function& function : module)
    if (function.hasLocalLinkage() && !function.isDeclaration() &&
        !function.hasFnAttribute(llvm::Attribute::NoInline))
      function.addFnAttr(llvm::Attribute::AlwaysInline);
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  mark_helpers_inline(module);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(early_cleanup()));
  passes.addPass(llvm::AlwaysInlinerPass(false));
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(main_passes()));
  passes.run(module, modules);
}

}  // namespace

void drop_code_generators() {
  machine_pool().clear();
}

std::string generate_object(llvm::Module& module, const backend::cpu::Target& target) {
  std::string features;
  for (const std::string& name : target.features) features += (features.empty() ? "+" : ",+") + name;
  auto machine = machine_pool().take(features);
  module.setDataLayout(machine->createDataLayout());
  optimise(module, *machine);
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  emit.add(new llvm::TargetLibraryInfoWrapperPass(llvm::Triple(module.getTargetTriple())));
  bool refused = machine->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  check(!refused, "LLVM cannot write object files for this machine");
  emit.run(module);
  machine_pool().give_back(features, std::move(machine));
  return std::string(object.str());
}

}  // namespace oxy::backend::cpu
