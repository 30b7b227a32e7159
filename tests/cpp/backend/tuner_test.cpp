// Block shapes by trial, on a device that is pretended: its kernels take as long as the test says.
#include "backend/cuda/tune/tuner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "backend/cuda/tune/candidates.h"

using namespace oxy;
using namespace oxy::backend::cuda;

namespace {

namespace fs = std::filesystem;

// What the pretended device does. A kernel's machine code is its text.
struct Device {
  std::map<std::string, float> milliseconds;  // by text; others cannot be launched
  std::map<Handle, std::string> kernels;
  float last = 0;
  int launches = 0;
  int64_t allocated = 0;  // pieces of memory that nobody has freed
  bool has_memory = true;
};
Device device;

Driver pretended_driver() {
  device = {};
  Driver driver;
  driver.device_count = [](int* count) { return *count = 1, 0; };
  driver.device_name = [](char* name, int, int) { return std::strcpy(name, "a card"), 0; };
  driver.error_text = [](Result, const char** text) { return *text = "an error", 0; };
  driver.load_library = [](Handle* library, const void* code, int*, void**, unsigned, int*, void**,
                           unsigned) {
    *library = new std::string(static_cast<const char*>(code));
    return 0;
  };
  driver.unload_library = [](Handle library) { return delete static_cast<std::string*>(library), 0; };
  driver.get_kernel = [](Handle* kernel, Handle library, const char*) {
    *kernel = library;
    device.kernels[library] = *static_cast<std::string*>(library);
    return 0;
  };
  driver.launch = [](const LaunchConfig*, Handle function, void**, void**) {
    const auto found = device.milliseconds.find(device.kernels[function]);
    if (found == device.milliseconds.end()) return 701;
    device.last = found->second;
    ++device.launches;
    return 0;
  };
  TimingFunctions& timing = driver.timing;
  timing.create_stream = [](Handle* stream, unsigned) { return *stream = &device, 0; };
  timing.destroy_stream = timing.wait_for_stream = [](Handle) { return 0; };
  timing.create_event = [](Handle* event, unsigned) { return *event = &device, 0; };
  timing.destroy_event = timing.wait_for_event = [](Handle) { return 0; };
  timing.record = [](Handle, Handle) { return 0; };
  timing.elapsed = [](float* milliseconds, Handle, Handle) { return *milliseconds = device.last, 0; };
  timing.allocate = [](uint64_t* pointer, size_t) {
    if (!device.has_memory) return 2;
    ++device.allocated;
    return *pointer = 4096, 0;
  };
  timing.free = [](uint64_t) { return --device.allocated, 0; };
  timing.fill = [](uint64_t, unsigned char, size_t, Handle) { return 0; };
  timing.exchange_capture_mode = [](int*) { return 0; };
  return driver;
}

struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("oxyfuel-tuner-{}", getpid());
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

// A worker in Python whose machine code is the source; "bad" does not compile.
std::vector<std::string> echo_command(const Folder& folder) {
  const fs::path file = folder.path / "worker.py";
  std::ofstream(file) << R"(
import os, struct, sys
stream = os.fdopen(0, "rb", 0)
def read(count):
    data = stream.read(count)
    if len(data) != count: sys.exit()
    return data
def number(): return struct.unpack("<I", read(4))[0]
while True:
    fields = [read(number()) for _ in range(number())]
    bad = fields[3] == b"bad"
    answer = [b"error", b"no"] if bad else [b"ok", fields[3] + b"\0", b"128", b"0", b"0"]
    os.write(1, struct.pack("<I", len(answer)) + b"".join(struct.pack("<I", len(f)) + f for f in answer))
)";
  return {"python3", file.string()};
}

Trial trial(std::vector<std::string> sources) {
  Trial result;
  for (std::string& source : sources) {
    Candidate candidate{.shape = {.columns = 128 << result.candidates.size()}, .programs = 4};
    candidate.text.name = "kernel";
    candidate.text.source = std::move(source);
    result.candidates.push_back(std::move(candidate));
  }
  result.operands = {.bytes = {1 << 20, 64}, .sizes = {7}};
  return result;
}

}  // namespace

TEST_CASE("tuner: the fastest shape is taken, and known from then on") {
  const Folder folder;
  const Driver driver = pretended_driver();
  TritonCompiler compiler({.command = echo_command(folder), .version = "1"}, nullptr);
  const auto store = std::make_shared<FileStore>(folder.path / "choices", ".choice", 1 << 20);
  device.milliseconds = {{"slow", 3}, {"chosen", 2}, {"alike", 1.99F}, {"fast", 1}};
  const std::vector<Trial> trials{trial({"chosen", "slow", "fast", "bad", "refused"}),
                                  trial({"chosen", "alike"}), trial({"refused", "fast"}), trial({"fast"})};
  Tuner tuner(driver, compiler, store);
  const std::vector<size_t> expected{2, 0, 0, 0};
  CHECK(tuner.fastest(trials, 90) == expected);
  CHECK(device.allocated == 0);

  const int launches = device.launches;
  CHECK(tuner.fastest(std::span(trials).first(2), 90) == std::vector<size_t>{2, 0});
  Tuner later(driver, compiler, store);
  CHECK(later.fastest(std::span(trials).first(2), 90) == std::vector<size_t>{2, 0});
  CHECK(device.launches == launches);

  SUBCASE("other sizes are timed anew") {
    Trial larger = trials[0];
    larger.operands.sizes = {8};
    CHECK(later.fastest({&larger, 1}, 90) == std::vector<size_t>{2});
    CHECK(device.launches > launches);
  }
}

TEST_CASE("tuner: the way whose launches take the least time together is taken, and known from then on") {
  const Folder folder;
  const Driver driver = pretended_driver();
  TritonCompiler compiler({.command = echo_command(folder), .version = "1"}, nullptr);
  const auto store = std::make_shared<FileStore>(folder.path / "choices", ".choice", 1 << 20);
  device.milliseconds = {{"whole", 3}, {"part", 1.25F}, {"join", 0.25F}, {"many parts", 0.5F}};
  const auto way = [](std::string name, const std::vector<std::pair<std::string, int64_t>>& kernels) {
    WaysTrial::Way result{std::move(name), {}};
    for (const auto& [source, count] : kernels) result.launches.push_back({trial({source}), count});
    return result;
  };
  const WaysTrial::Way whole = way("as a whole", {{"whole", 1}}),
                       parts = way("in 4 parts", {{"part", 1}, {"join", 1}}),
                       more = way("in 8 parts", {{"many parts", 2}, {"join", 3}}),
                       bad = way("in 9 parts", {{"bad", 1}}),
                       refused = way("in 10 parts", {{"part", 1}, {"refused", 1}});
  const std::vector<WaysTrial> trials{{"sums", {whole, more, parts, bad, refused}},
                                      {"maxima", {parts, whole}},
                                      {"products", {refused, parts}},
                                      {"alike", {way("a", {}), way("b", {})}}};
  Tuner tuner(driver, compiler, store);
  const std::vector<size_t> expected{2, 0, 0, 0};
  CHECK(tuner.fastest_ways(trials, 90) == expected);
  CHECK(device.allocated == 0);

  const int launches = device.launches;
  Tuner later(driver, compiler, store);
  CHECK(later.fastest_ways(std::span(trials).first(2), 90) == std::vector<size_t>{2, 0});
  CHECK(device.launches == launches);

  SUBCASE("more launches of a kernel count more often") {
    const WaysTrial again{"sums", {whole, way("in 4 parts", {{"part", 3}, {"join", 1}})}};
    CHECK(later.fastest_ways({&again, 1}, 90) == std::vector<size_t>{0});
  }
}

TEST_CASE("tuner: a device without memory for trials keeps the chosen shapes") {
  const Folder folder;
  const Driver driver = pretended_driver();
  TritonCompiler compiler({.command = echo_command(folder), .version = "1"}, nullptr);
  device.milliseconds = {{"chosen", 2}, {"fast", 1}};
  device.has_memory = false;
  const std::vector<Trial> trials{trial({"chosen", "fast"})};
  Tuner tuner(driver, compiler, nullptr);
  CHECK(tuner.fastest(trials, 90) == std::vector<size_t>{0});
  device.has_memory = true;
  CHECK(tuner.fastest(trials, 90) == std::vector<size_t>{1});
  CHECK(device.allocated == 0);
}

TEST_CASE("tuner: candidates are of one form, each once, the chosen one first") {
  backend::LoopNest nest;
  for (const LaunchShape& chosen :
       {LaunchShape{.columns = 1024, .warps = 4},
        LaunchShape{.form = Form::Tile, .rows = 32, .columns = 32, .warps = 4},
        LaunchShape{.form = Form::Rows, .rows = 2, .columns = 512, .warps = 4},
        LaunchShape{.form = Form::Rows, .rows = 1, .columns = 4096, .is_persistent = false, .warps = 16}}) {
    const std::vector<LaunchShape> shapes = candidate_shapes(nest, chosen);
    CHECK(shapes.front() == chosen);
    CHECK(shapes.size() > 3);
    for (size_t k = 0; k < shapes.size(); ++k) {
      CHECK(shapes[k].form == chosen.form);
      CHECK(shapes[k].warps >= 1);
      CHECK(shapes[k].rows * shapes[k].columns == power_of_two(shapes[k].rows * shapes[k].columns));
      for (size_t j = 0; j < k; ++j) CHECK(!(shapes[j] == shapes[k]));
    }
  }
}
