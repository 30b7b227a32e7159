#include "backend/cpu/jit/clang/frontend.h"

#include <clang/Basic/Diagnostic.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <string>
#include <vector>

#include "base/error.h"

// Clang's back end registers Polly, which this build leaves out.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", "", [](llvm::PassBuilder&) {}};
}

namespace oxy::backend::cpu {
namespace {

constexpr const char* kFileName = "kernel.cpp";

// What the driver would pass to `clang -cc1` for -O2 -fPIC, less everything that looks for files. Kernels
// neither throw nor unwind; math functions set no errno.
constexpr const char* kArguments[] = {"-emit-llvm-only",
                                      "-w",
                                      "-O2",
                                      "-disable-llvm-passes",
                                      "-std=c++20",
                                      "-fgnuc-version=4.2.1",
                                      "-fno-rtti",
                                      "-fno-threadsafe-statics",
                                      "-ffp-contract=on",
                                      "-mframe-pointer=none",
                                      "-mrelocation-model",
                                      "pic",
                                      "-pic-level",
                                      "2",
                                      "-nostdsysteminc",
                                      "-nobuiltininc",
                                      "-nostdinc++",
                                      "-x",
                                      "c++",
                                      kFileName};

std::shared_ptr<clang::CompilerInvocation> make_invocation(const backend::cpu::Target& target,
                                                           clang::DiagnosticsEngine& diagnostics) {
  std::string triple = llvm::sys::getProcessTriple();
  std::string width = "-mprefer-vector-width=" + std::to_string(8 * target.vector_bytes);
  std::vector<std::string> features;
  for (const std::string& name : target.features) features.push_back("+" + name);
  std::vector<const char*> arguments = {"-triple", triple.c_str(), width.c_str()};
  for (const std::string& feature : features) {
    arguments.push_back("-target-feature");
    arguments.push_back(feature.c_str());
  }
  arguments.insert(arguments.end(), std::begin(kArguments), std::end(kArguments));
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  bool valid = clang::CompilerInvocation::CreateFromArgs(*invocation, arguments, diagnostics);
  check(valid, "clang refused its own options");
  return invocation;
}

}  // namespace

std::unique_ptr<llvm::Module> parse_kernel(std::string_view source, const backend::cpu::Target& target,
                                           llvm::LLVMContext& context) {
  std::string messages;
  llvm::raw_string_ostream message_stream(messages);
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options(new clang::DiagnosticOptions);
  clang::TextDiagnosticPrinter printer(message_stream, options.get());
  llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> diagnostics(
      new clang::DiagnosticsEngine(new clang::DiagnosticIDs, options, &printer, false));

  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile(kFileName, 0,
                 llvm::MemoryBuffer::getMemBuffer({source.data(), source.size()}, kFileName, false));

  clang::CompilerInstance compiler;
  compiler.setInvocation(make_invocation(target, *diagnostics));
  compiler.setDiagnostics(diagnostics.get());
  compiler.setVerboseOutputStream(llvm::nulls());  // else "1 error generated." on stderr
  compiler.createFileManager(files);
  clang::EmitLLVMOnlyAction action(&context);
  bool compiled = compiler.ExecuteAction(action) && !diagnostics->hasErrorOccurred();
  std::unique_ptr<llvm::Module> module = action.takeModule();
  if (!compiled || !module)
    throw InternalError("a generated kernel does not compile:\n" + message_stream.str());
  return module;
}

}  // namespace oxy::backend::cpu
