#include <doctest/doctest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "backend/cpu/jit/jit.h"
#include "backend/cpu/jit/parallel.h"
#include "backend/cpu/jit/subprocess.h"
#include "backend/cpu/jit/temporary_folder.h"
#include "base/error.h"

namespace oxy::backend::cpu {
namespace {

std::vector<std::unique_ptr<Compiler>> all_compilers() {
  std::vector<std::unique_ptr<Compiler>> compilers;
  compilers.push_back(make_system_compiler());
  if (kHasClang) compilers.push_back(make_clang_compiler());
  return compilers;
}

plan::Kernel kernel(const std::string& name, const std::string& body) {
  std::string source =
      "using int64_t = long; extern \"C\" int " + name +
      "(void* const* buffers, const int64_t* sizes, void* scratch, int64_t begin, int64_t end) {\n" + body +
      "\n}\n";
  return {name, source};
}

plan::Kernel scale_kernel(const std::string& name, const std::string& factor) {
  return kernel(name,
                "const float* x = (const float*)buffers[0]; float* y = (float*)buffers[1];\n"
                "for (int64_t i = begin; i < end; ++i) y[i] = x[i] * " +
                    factor + ";\nreturn 0;");
}

SliceFunction slices(const KernelFunction& function) {
  return std::get<SliceFunction>(function);
}

std::vector<float> run(const KernelFunction& function, std::vector<float> x) {
  std::vector<float> y(x.size(), -1.0f);
  void* buffers[] = {x.data(), y.data()};
  int64_t sizes[] = {static_cast<int64_t>(x.size())};
  CHECK(slices(function)(buffers, sizes, nullptr, 0, sizes[0]) == 0);
  return y;
}

TEST_CASE("backend: kernels run, by every compiler") {
  for (auto& compiler : all_compilers()) {
    CAPTURE(compiler->description());
    std::vector<plan::Kernel> kernels = {scale_kernel("twice", "2"), scale_kernel("thrice", "3"),
                                         kernel("status", "return (int)sizes[0] + (int)begin;")};
    auto library = compiler->compile(kernels);
    std::vector<float> x(37);
    std::iota(x.begin(), x.end(), 1.0f);
    CHECK(run(library->function(0), x)[36] == 74.0f);
    CHECK(run(library->function(1), x)[36] == 111.0f);
    int64_t size = 40;
    CHECK(slices(library->function(2))(nullptr, &size, nullptr, 2, 3) == 42);
    CHECK_THROWS_AS(library->function(3), InternalError);
  }
}

TEST_CASE("backend: vector extensions, libm and constants in memory") {
  plan::Kernel gelu = kernel("wide",
                             "typedef float v16 __attribute__((vector_size(64), aligned(4)));\n"
                             "extern \"C\" double erf(double);\n"
                             "static const float table[4] = {1, 10, 100, 1000};\n"
                             "const float* x = (const float*)buffers[0]; float* y = (float*)buffers[1];\n"
                             "*(v16*)y = *(const v16*)x * 2.0f + table[begin];\n"
                             "for (int64_t i = 16; i < end; ++i) y[i] = (float)erf(x[i]);\n"
                             "return 0;");
  // A declaration with linkage may not stand inside a function.
  std::string declaration = "extern \"C\" double erf(double);\n";
  gelu.source.erase(gelu.source.find(declaration), declaration.size());
  gelu.source.insert(0, declaration);
  for (auto& compiler : all_compilers()) {
    CAPTURE(compiler->description());
    std::vector<float> x(18, 0.5f);
    std::vector<float> y = run(compiler->compile(std::span(&gelu, 1))->function(0), x);
    CHECK(y[15] == 2.0f);
    CHECK(y[17] == doctest::Approx(0.5204998778));
  }
}

TEST_CASE("backend: equal sources are one function, in a call and across calls") {
  for (auto& compiler : all_compilers()) {
    CAPTURE(compiler->description());
    std::vector<plan::Kernel> kernels = {scale_kernel("same", "5"), scale_kernel("other", "6"),
                                         scale_kernel("same", "5")};
    auto first = compiler->compile(kernels);
    CHECK((first->function(0) == first->function(2)));
    CHECK((first->function(0) != first->function(1)));
    auto second = compiler->compile(std::span(kernels).first(1));
    KernelFunction shared = first->function(0);
    CHECK((second->function(0) == shared));
    first.reset();
    CHECK(run(second->function(0), {2})[0] == 10.0f);
  }
}

TEST_CASE("backend: equal names with other sources in two calls do not meet") {
  for (auto& compiler : all_compilers()) {
    plan::Kernel seven = scale_kernel("same_name", "7"), eight = scale_kernel("same_name", "8");
    auto first = compiler->compile(std::span(&seven, 1));
    auto second = compiler->compile(std::span(&eight, 1));
    CHECK(run(first->function(0), {1})[0] == 7.0f);
    CHECK(run(second->function(0), {1})[0] == 8.0f);
  }
}

TEST_CASE("backend: what cannot be compiled or linked is an internal error with its reason") {
  for (auto& compiler : all_compilers()) {
    CAPTURE(compiler->description());
    auto message = [&](const plan::Kernel& bad) -> std::string {
      try {
        compiler->compile(std::span(&bad, 1));
      } catch (const InternalError& error) {
        return error.what();
      }
      return "compiled";
    };
    CHECK(message(kernel("bad", "return undeclared_name;")).find("undeclared_name") != std::string::npos);
    plan::Kernel unresolved = kernel("unresolved", "return no_such_function_anywhere(begin);");
    unresolved.source.insert(0, "extern \"C\" int no_such_function_anywhere(long);\n");
    CHECK(message(unresolved).find("no_such_function_anywhere") != std::string::npos);
    plan::Kernel misnamed = kernel("name_in_source", "return 0;");
    misnamed.name = "name_in_plan";
    CHECK(message(misnamed).find("name_in_plan") != std::string::npos);
    // The compiler is as good as new after an error.
    plan::Kernel good = kernel("good", "return 11;");
    CHECK(slices(compiler->compile(std::span(&good, 1))->function(0))(nullptr, nullptr, nullptr, 0, 0) == 11);
  }
}

TEST_CASE("backend: threads share a compiler") {
  for (auto& compiler : all_compilers()) {
    std::vector<std::jthread> threads;
    std::vector<int> results(4);
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::vector<plan::Kernel> kernels = {
            kernel("shared", "return 1;"),
            kernel("own" + std::to_string(t), "return " + std::to_string(10 * t) + ";")};
        auto library = compiler->compile(kernels);
        for (size_t k : {0, 1}) results[t] += slices(library->function(k))(nullptr, nullptr, nullptr, 0, 0);
      });
    threads.clear();
    for (int t = 0; t < 4; ++t) CHECK(results[t] == 1 + 10 * t);
  }
}

TEST_CASE("backend: a folder that cannot be written is unsupported, and says what to do") {
  std::string before = getenv("TMPDIR") ? getenv("TMPDIR") : "";
  setenv("TMPDIR", "/proc/no-such-folder", 1);
  auto compiler = make_system_compiler();
  plan::Kernel any = kernel("any", "return 0;");
  try {
    compiler->compile(std::span(&any, 1));
    FAIL("nothing was thrown");
  } catch (const Unsupported& error) {
    CHECK(std::string(error.what()).find("TMPDIR") != std::string::npos);
  }
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
}

TEST_CASE("backend: a missing compiler is unsupported") {
  std::string before = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  CHECK_THROWS_AS(make_system_compiler(), Unsupported);
  setenv("PATH", before.c_str(), 1);
}

TEST_CASE("backend: a temporary folder disappears with its object") {
  std::filesystem::path path;
  {
    TemporaryFolder folder;
    path = folder.path();
    folder.write("file", "text");
    CHECK(std::filesystem::file_size(path / "file") == 4);
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("backend: processes report status and output") {
  ProcessResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(result.status == 3);
  CHECK(result.output == "out\nerr\n");
  CHECK(run_process({"sh", "-c", "kill -9 $$"}).status == 128 + 9);
  CHECK(run_process({"/no/such/program"}).status == 127);
}

TEST_CASE("backend: every piece of work runs once, and the first error comes back") {
  std::vector<std::atomic<int>> done(100);
  for_each_in_parallel(done.size(), [&](size_t i) { ++done[i]; }, 4);
  for (auto& count : done) CHECK(count == 1);
  for_each_in_parallel(0, [](size_t) { FAIL("there is no work"); });
  CHECK_THROWS_AS(for_each_in_parallel(
                      8,
                      [](size_t i) {
                        if (i == 5) throw UserError("five");
                      },
                      2),
                  UserError);
}

}  // namespace
}  // namespace oxy::backend::cpu
