// Triton in processes beside this one: messages, workers that die, kernels on disk; with Triton itself where
// it is installed (OXYFUEL_TRITON: a folder that has it).
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backend/cuda/compile/triton_compiler.h"
#include "base/error.h"
#include "base/interruption.h"

using namespace oxy;
using namespace oxy::backend::cuda;
namespace fs = std::filesystem;

namespace {

// A folder that goes with the test.
struct Folder {
  Folder() : path(fs::temp_directory_path() / fmt::format("oxyfuel-test-{}-{}", getpid(), next++)) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }

  fs::path path;
  static inline int next = 0;
};

const std::string kWorker = std::string(OXYFUEL_SOURCE_DIR) + "/python/oxyfuel/_triton_worker.py";

// A worker that speaks the protocol and does as `compiled` says in place of Triton.
std::vector<std::string> fake_worker(const Folder& folder, const std::string& compiled) {
  const std::string file =
      folder.write("fake.py", fmt::format("import os, runpy, sys\n"
                                          "worker = runpy.run_path({0:?})\n"
                                          "def compiled(name, architecture, is_aligned, source):\n"
                                          "    {1}\n"
                                          "worker['serve'].__globals__['compiled'] = compiled\n"
                                          "worker['main']()\n",
                                          kWorker, compiled));
  return {"python3", file};
}

TritonKernel kernel(const std::string& name, const std::string& source = "") {
  return {.name = name, .source = source};
}

constexpr const char* kEcho = "return ['ok', source.encode(), 128, architecture, 2]";

}  // namespace

TEST_CASE("triton: versions that are too old") {
  CHECK(why_unfit("3.5.1") == "Triton 3.5.1 is installed, and 3.6 or a later one is needed");
  CHECK(why_unfit("2.10.0").starts_with("Triton 2.10.0"));
  for (const char* version : {"3.6.0", "3.6.0+git1234", "3.10.0", "4.0", "nightly", ""})
    CHECK(why_unfit(version).empty());
}

TEST_CASE("Triton compiler: an interruption ends the wait before all kernels are compiled") {
  const Folder folder;
  TritonCompiler compiler({.command = fake_worker(folder, kEcho), .version = "1", .most_workers = 1},
                          nullptr);
  std::vector<TritonKernel> kernels;
  for (int k = 0; k < 20; ++k) kernels.push_back(kernel(fmt::format("kernel{}", k)));
  static int asked = 0;
  set_interruption_check([] { return ++asked % 8 == 0; });
  CHECK(compiler.compile(kernels).size() == 20);
  CHECK(asked == 0);  // nobody handles it
  {
    const Interruptible interruptible;
    CHECK_THROWS_AS(compiler.compile(kernels), Interrupted);
    CHECK(asked == 8);
    CHECK_THROWS_AS(compiler.try_compile(kernels), Interrupted);
    CHECK(asked == 16);
  }
  set_interruption_check(nullptr);
  CHECK(compiler.compile(kernels).size() == 20);
}

TEST_CASE("Triton compiler: messages") {
  const Message message{"", std::string("a\0b", 3), std::string(70000, 'x')};
  const std::string bytes = encode(message);
  CHECK(decode(bytes) == message);
  CHECK(decode(encode({})) == Message{});
  CHECK(!decode(bytes.substr(0, bytes.size() - 1)));
  CHECK(!decode(bytes + "x"));
  CHECK(!decode("\xff\xff\xff\xff"));
}

TEST_CASE("Triton compiler: kernels on disk") {
  const Folder folder;
  const KernelStore store(folder.path / "kernels", 3000);
  const CompiledKernel code{std::string(900, '\x7f'), 256, 1024, 2};
  const Hash128 key{1, 2};
  CHECK(!store.find(key));
  store.keep(key, code);
  CHECK(store.find(key) == code);
  CHECK(!store.find({1, 3}));

  SUBCASE("a damaged file is no kernel, and goes") {
    const fs::path file = fs::directory_iterator(folder.path / "kernels")->path();
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(500).put('!');
    CHECK(!store.find(key));
    CHECK(!fs::exists(file));
  }
  SUBCASE("those used longest ago go first") {
    for (uint64_t k = 10; k < 12; ++k) store.keep({k, 0}, code);
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
    for (const auto& entry : fs::directory_iterator(folder.path / "kernels"))
      fs::last_write_time(entry.path(), old);
    CHECK(store.find(key));  // used now
    store.keep({12, 0}, code);
    CHECK(store.find(key));
    CHECK(store.find({12, 0}));
    CHECK(!(store.find({10, 0}) && store.find({11, 0})));
  }
  SUBCASE("a folder that cannot be written keeps nothing") {
    const std::string file = folder.write("file", "");
    const KernelStore nowhere(fs::path(file) / "kernels", 3000);
    nowhere.keep(key, code);
    CHECK(!nowhere.find(key));
  }
}

TEST_CASE("Triton compiler: answers come back in order, and the next time from disk") {
  const Folder folder;
  const auto store = std::make_shared<KernelStore>(folder.path / "kernels", 1 << 20);
  std::vector<TritonKernel> kernels;
  for (int k = 0; k < 9; ++k) kernels.push_back(kernel(fmt::format("k{}", k), fmt::format("text {}", k)));
  TritonCompiler compiler({.command = fake_worker(folder, kEcho), .version = "1", .most_workers = 3}, store);
  const std::vector<CompiledKernel> first = compiler.compile(kernels);
  REQUIRE(first.size() == 9);
  for (size_t k = 0; k < 9; ++k) CHECK(first[k] == CompiledKernel{fmt::format("text {}", k), 128, 90, 2});

  TritonCompiler without_workers({.command = {"/nonexistent"}, .version = "1"}, store);
  CHECK(without_workers.compile(kernels) == first);
  TritonCompiler newer({.command = {"/nonexistent"}, .version = "2"}, store);
  CHECK_THROWS_AS(newer.compile(kernels), Unsupported);
  kernels.resize(1);
  kernels[0].is_aligned = false;
  CHECK_THROWS_AS(without_workers.compile(kernels), Unsupported);
}

TEST_CASE("Triton compiler: a worker that dies is replaced once") {
  const Folder folder;
  const std::string mark = (folder.path / "died").string();
  const std::vector<TritonKernel> kernels{kernel("k", "text")};
  SUBCASE("the next one answers") {
    const auto command = fake_worker(
        folder, fmt::format("if not os.path.exists({0:?}): open({0:?}, 'w').close(); os._exit(1)\n    {1}",
                            mark, kEcho));
    TritonCompiler compiler({.command = command, .version = "1"}, nullptr);
    CHECK(compiler.compile(kernels)[0].machine_code == "text");
  }
  SUBCASE("the next one dies too") {
    TritonCompiler compiler({.command = fake_worker(folder, "os._exit(1)"), .version = "1"}, nullptr);
    CHECK_THROWS_AS(compiler.compile(kernels), Unsupported);
  }
  SUBCASE("one that was idle has ended") {
    const auto command =
        fake_worker(folder, fmt::format("worker['serve'].__globals__['IDLE_SECONDS'] = 0.05; {}", kEcho));
    TritonCompiler compiler({.command = command, .version = "1"}, nullptr);
    CHECK(compiler.compile(kernels)[0].machine_code == "text");
    usleep(200000);
    CHECK(compiler.compile(kernels)[0].machine_code == "text");
  }
  SUBCASE("all that were idle have ended") {
    const auto command =
        fake_worker(folder, fmt::format("worker['serve'].__globals__['IDLE_SECONDS'] = 0.05; {}", kEcho));
    TritonCompiler compiler({.command = command, .version = "1", .most_workers = 4}, nullptr);
    std::vector<TritonKernel> several;
    for (int k = 0; k < 8; ++k) several.push_back(kernel(fmt::format("k{}", k), "text"));
    for (int round = 0; round < 3; ++round) {
      CHECK(compiler.compile(several).size() == several.size());
      usleep(200000);
    }
  }
  SUBCASE("one that hangs is given up") {
    TritonCompiler compiler({.command = fake_worker(folder, "import time; time.sleep(60)"),
                             .version = "1",
                             .patience = std::chrono::milliseconds(300)},
                            nullptr);
    CHECK_THROWS_AS(compiler.compile(kernels), Unsupported);
  }
}

TEST_CASE("Triton compiler: a text that does not compile is an error with Triton's words") {
  const Folder folder;
  TritonCompiler compiler(
      {.command = fake_worker(folder, "raise ValueError('no such thing')"), .version = "1"}, nullptr);
  const std::vector<TritonKernel> kernels{kernel("k", "text")};
  try {
    compiler.compile(kernels);
    FAIL("it compiled");
  } catch (const InternalError& error) {
    CHECK(std::string(error.what()).find("ValueError: no such thing") != std::string::npos);
  }
}

TEST_CASE("Triton compiler: Triton itself, where it is installed") {
  if (const char* folder = std::getenv("OXYFUEL_TRITON"))
    setenv("PYTHONPATH", folder, 1);  // NOLINT(concurrency-mt-unsafe): one thread
  if (std::system("python3 -c 'import triton' 2> /dev/null") != 0) {  // NOLINT(cert-env33-c)
    MESSAGE("no Triton: install it, or set OXYFUEL_TRITON to a folder with it");
    return;
  }
  const std::string source = R"(
import triton
import triton.language as tl

@triton.jit
def twice(in0, out0, n0, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(out0 + i, 2 * tl.load(in0 + i, i < n0), i < n0)

twice_launch = {
    "signature": {"in0": "*fp32", "out0": "*fp32", "n0": "i32"},
    "constants": {"COLUMNS": 1024},
    "options": {"num_warps": 8},
}
)";
  TritonCompiler compiler({.command = {"python3", kWorker}, .version = "installed"}, nullptr);
  std::vector<TritonKernel> kernels{kernel("twice", source), kernel("twice", source)};
  kernels[1].architecture = 80;
  const std::vector<CompiledKernel> code = compiler.compile(kernels);
  for (const CompiledKernel& k : code) {
    CHECK(
        k.machine_code.starts_with("\x7f"
                                   "ELF"));
    CHECK(k.threads == 256);
    CHECK(k.extra_pointers == 2);
  }
  CHECK(code[0].machine_code != code[1].machine_code);
  kernels[0].source.replace(kernels[0].source.find("2 *"), 3, "nothing *");
  CHECK_THROWS_AS(compiler.compile(std::span(kernels).first(1)), InternalError);
}
