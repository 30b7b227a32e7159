// Generated sources compile without a warning under both compilers, for every instruction set, and the
// system's compiler computes the same.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "backend/cpu/jit/subprocess.h"
#include "backend/cpu/print/standalone.h"
#include "backend/graph_checks.h"

using namespace oxy;
using namespace oxy::testing;

namespace {

constexpr const char* kGraphs[] = {
    R"(graph(%0: float32[5, 197], %1: float32[5, 197], %2: float32[197]) {
  %3: float32[5, 197] = aten::add.Tensor(%0, %1)
  %4: float32[5, 197] = aten::gelu(%3)
  %5: float32[5, 197], %6: float32[5, 1], %7: float32[5, 1] = aten::native_layer_norm(%4, [197], %2, %2, 1e-05)
  %8: float32[5, 197] = aten::_softmax(%5, -1, False)
  %9: float32[5, 197] = aten::tanh(%8)
  %10: float32[5, 197] = aten::sin(%9)
  %11: float32[5, 197] = aten::log1p(%10)
  %12: int64[5] = aten::argmax(%8, 1, False)
  return %11, %12
})",
    R"(graph(%0: bfloat16[7, 37], %1: float16[37], %2: int64[7], %3: bool[37]) {
  %4: float32[7, 37] = aten::add.Tensor(%0, %1)
  %5: float32[7, 37] = aten::where.self(%3, %4, %4)
  %6: float32[37] = aten::sum.dim_IntList(%5, [0], False, dtype=None)
  %7: float16[37] = aten::mul.Tensor(%1, 2)
  %8: int64[7] = aten::remainder.Scalar(%2, 3)
  %9: int64[7] = aten::bitwise_and.Scalar(%8, 2)
  %10: bfloat16[7, 37] = aten::exp(%0)
  return %6, %7, %9, %10
})",
    R"(graph(%0: float64[3, 40], %1: int64[6], %2: float32[9, 11]) {
  %3: float64[3, 40] = aten::exp(%0)
  %4: float64[3] = aten::sum.dim_IntList(%3, [1], False, dtype=None)
  %5: float32[6, 11] = aten::embedding(%2, %1)
  %6: float32[6, 15] = aten::constant_pad_nd(%5, [1, 3], 0.5)
  return %4, %6
})",
};

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
}

}  // namespace

TEST_CASE("kernels: no warnings from clang and gcc") {
  auto folder = std::filesystem::temp_directory_path() / fmt::format("oxyfuel-kernels-{}", getpid());
  std::filesystem::create_directories(folder);
  for (backend::cpu::Isa isa :
       {backend::cpu::Isa::Scalar, backend::cpu::Isa::Avx2, backend::cpu::Isa::Avx512}) {
    backend::cpu::Target target = backend::cpu::make_target(isa);
    if (target.isa != isa) continue;
    std::string files;
    for (const char* text : kGraphs)
      for (const plan::Kernel& kernel : scheduled(lowered(text), target, {}).kernels) {
        auto path = folder / (kernel.name + ".cpp");
        std::ofstream(path) << kernel.source;
        files += " " + path.string();
      }
    std::string features;
    for (const std::string& feature : target.features) features += " -m" + feature;
    for (const char* compiler : {"clang++-19", "g++"}) {
      if (!has_program(compiler)) continue;
      CAPTURE(compiler);
      std::string command = fmt::format("{} -std=c++20 -fsyntax-only -Wall -Werror -Wno-psabi {} {}",
                                        compiler, features, files);
      CHECK(std::system(command.c_str()) == 0);
    }
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("kernels: the system's compiler computes the same") {
  auto compiler = backend::cpu::make_system_compiler();
  for (const char* text : kGraphs) check_graph(text, {1e-2, 1e-2}, {Way{}}, *compiler);
}

TEST_CASE("kernels: a standalone one compiles with no other file and runs") {
  auto folder = std::filesystem::temp_directory_path() / fmt::format("oxyfuel-standalone-{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string symbolic =
      "symbol s0 : id 1 in [2, 1024]\n"
      "symbol s1 : id 2 in [2, 1024]\n"
      "graph(%0: float32[s0, s1], %1: int64[s0]) {\n"
      "  %2: float32[s0, s1] = aten::sin(%0)\n"
      "  %3: float32[s0] = aten::sum.dim_IntList(%2, [1], False, dtype=None)\n"
      "  %4: float32[s0] = aten::mul.Tensor(%3, %1)\n"
      "  return %4\n}";
  for (const std::string& text : {std::string(kGraphs[1]), std::string(kGraphs[2]), symbolic}) {
    const plan::Plan plan = scheduled(lowered(text), backend::cpu::host_target(), {});
    for (const plan::KernelId k : plan.kernels.ids()) {
      const auto source = folder / "kernel.cpp", program = folder / "kernel";
      std::ofstream(source) << backend::cpu::standalone(plan, k);
      for (const char* compiler : {"clang++-19", "g++"}) {
        if (!has_program(compiler)) continue;
        CAPTURE(compiler);
        // Of some processors Clang says that -march=native names features that do not go together.
        const backend::cpu::ProcessResult built = backend::cpu::run_process(
            {compiler, "-O3", "-march=native", "-Wall", "-Wno-psabi", "-Wno-invalid-feature-combination",
             "-o", program.string(), source.string()});
        CHECK(built.output == "");
        REQUIRE(built.status == 0);
        const backend::cpu::ProcessResult ran = backend::cpu::run_process({program.string()});
        CHECK(ran.status == 0);
        CHECK(ran.output.starts_with(plan.kernels[k].name + ": "));
        CHECK(ran.output.ends_with(" us a call\n"));
      }
    }
  }
  std::filesystem::remove_all(folder);
}
