#include "backend/cuda/tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cuda/compile/message.h"
#include "backend/cuda/load/cubin.h"
#include "base/error.h"
#include "base/log.h"

namespace oxy::backend::cuda {

namespace {

constexpr std::string_view kFormat = "2";  // of what is kept
constexpr double kWorthIt = 0.98;          // of the chosen one's time: less is noise

std::string text_of(const LaunchShape& shape) {
  return fmt::format("{} {} {} {} {} {} {} {}", static_cast<int>(shape.form), shape.rows, shape.columns,
                     shape.is_persistent, shape.tile_loop, shape.tile_loops, shape.warps, shape.stages);
}

std::vector<std::string> choices_of(const Trial& trial) {
  std::vector<std::string> shapes;
  for (const Candidate& candidate : trial.candidates) shapes.push_back(text_of(candidate.shape));
  return shapes;
}

std::vector<std::string> choices_of(const WaysTrial& trial) {
  std::vector<std::string> names;
  for (const WaysTrial::Way& way : trial.ways) names.push_back(way.name);
  return names;
}

std::string description(const LaunchShape& shape) {
  std::string text = fmt::format("{} x {} by {} warps", shape.rows, shape.columns, shape.warps);
  if (shape.form == Form::Rows && !shape.is_persistent) text += " in steps";
  if (shape.stages > 0) text += fmt::format(", {} stages", shape.stages);
  return text;
}

std::unique_ptr<Stopwatch> make_stopwatch(const Driver& driver) {
  auto stopwatch = Stopwatch::make(driver);
  if (!stopwatch)
    log(Channel::Timing, "tuning: the device gives no memory or stream for trials; nothing is tuned");
  return stopwatch;
}

// Times each shape that was compiled; nothing where the device refuses it.
std::vector<std::optional<double>> times_of(const Driver& driver, Stopwatch& stopwatch, const Trial& trial,
                                            std::span<const std::optional<CompiledKernel>> compiled) {
  std::vector<std::optional<double>> times(compiled.size());
  if (!stopwatch.set(trial.operands)) return times;
  for (size_t s = 0; s < compiled.size(); ++s) {
    if (!compiled[s]) continue;
    try {
      const NamedKernel kernel{trial.candidates[s].text.name, *compiled[s]};
      const auto library = load_kernels(driver, {&kernel, 1});
      times[s] = stopwatch.time(std::get<GridFunction>(library->function(0)), trial.candidates[s].programs);
    } catch (const InternalError&) {
      // It needs more than the device has. Another shape does not.
    }
  }
  return times;
}

size_t best_of(const std::vector<std::optional<double>>& times) {
  size_t best = 0;
  if (!times[0]) return best;
  for (size_t s = 1; s < times.size(); ++s)
    if (times[s] && *times[s] < (best == 0 ? kWorthIt * *times[0] : *times[best])) best = s;
  return best;
}

}  // namespace

Hash128 Tuner::key(const Trial& trial, std::span<const std::string> choices, int architecture) const {
  const Candidate& first = trial.candidates.front();
  Message parts{std::string(kFormat), card_name(driver_, 0),
                to_hex(compiler_.key({first.text.name, first.text.source, architecture})),
                std::to_string(first.programs)};
  for (const int64_t bytes : trial.operands.bytes) parts.push_back(std::to_string(bytes));
  for (const int64_t size : trial.operands.sizes) parts.push_back(std::to_string(size));
  parts.insert(parts.end(), choices.begin(), choices.end());
  return hash128(encode(parts));
}

Hash128 Tuner::key(const Trial& trial, int architecture) const {
  return key(trial, choices_of(trial), architecture);
}

Hash128 Tuner::key(const WaysTrial& trial, int architecture) const {
  Message parts;
  for (const WaysTrial::Way& way : trial.ways) {
    parts.push_back(way.name);
    for (const auto& [kernel, count] : way.launches) {
      parts.push_back(to_hex(key(kernel, {}, architecture)));
      parts.push_back(std::to_string(count));
    }
  }
  return hash128(encode(parts));
}

std::optional<size_t> Tuner::known(const Hash128& key, std::span<const std::string> choices) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = choices_.try_emplace(to_hex(key));
  std::optional<std::string>& choice = entry->second;
  if (is_new && store_) choice = store_->find(key);
  if (!choice) return std::nullopt;
  const auto found = std::ranges::find(choices, *choice);
  if (found == choices.end()) return std::nullopt;
  return static_cast<size_t>(found - choices.begin());
}

void Tuner::keep(const Hash128& key, const std::string& choice) {
  {
    const std::lock_guard lock(mutex_);
    choices_[to_hex(key)] = choice;
  }
  if (store_) store_->keep(key, choice);
}

template <class AnyTrial>
std::vector<size_t> Tuner::known_or_tuned(std::span<const AnyTrial> trials, int architecture) {
  std::vector<Hash128> keys;
  // A trial of each key that is not known: layers have the same kernels.
  std::map<std::string, const AnyTrial*> open;
  for (const AnyTrial& trial : trials) {
    keys.push_back(key(trial, architecture));
    const std::vector<std::string> choices = choices_of(trial);
    if (choices.size() > 1 && !known(keys.back(), choices)) open.try_emplace(to_hex(keys.back()), &trial);
  }
  std::vector<const AnyTrial*> asked;
  for (const auto& [digits, trial] : open) asked.push_back(trial);
  if (!asked.empty()) tune(std::span<const AnyTrial* const>(asked), architecture);
  std::vector<size_t> fastest;
  for (size_t t = 0; t < trials.size(); ++t)
    fastest.push_back(known(keys[t], choices_of(trials[t])).value_or(0));
  return fastest;
}

std::vector<size_t> Tuner::fastest(std::span<const Trial> trials, int architecture) {
  return known_or_tuned(trials, architecture);
}

std::vector<size_t> Tuner::fastest_ways(std::span<const WaysTrial> trials, int architecture) {
  return known_or_tuned(trials, architecture);
}

void Tuner::tune(std::span<const Trial* const> trials, int architecture) {
  std::vector<TritonKernel> asked;
  for (const Trial* trial : trials)
    for (const auto& [shape, text, programs] : trial->candidates)
      asked.push_back({text.name, text.source, architecture});
  log(Channel::Timing, "tuning: compiles {} candidates of {} kernels", asked.size(), trials.size());
  const std::vector<std::optional<CompiledKernel>> compiled = compiler_.try_compile(asked);
  const std::unique_ptr<Stopwatch> stopwatch = make_stopwatch(driver_);
  if (!stopwatch) return;
  std::span<const std::optional<CompiledKernel>> rest = compiled;
  for (size_t k = 0; k < trials.size(); ++k) {
    const Trial& trial = *trials[k];
    const auto times = times_of(driver_, *stopwatch, trial, rest.first(trial.candidates.size()));
    rest = rest.subspan(trial.candidates.size());
    if (!times[0]) continue;
    const size_t best = best_of(times);
    keep(key(trial, architecture), text_of(trial.candidates[best].shape));
    log(Channel::Timing, "tuning {} of {}: {} takes {:.1f} us as {}{}", k + 1, trials.size(),
        trial.candidates[0].text.name, *times[best], description(trial.candidates[best].shape),
        best == 0 ? ", as chosen"
                  : fmt::format("; {:.1f} us as {}", *times[0], description(trial.candidates[0].shape)));
  }
}

void Tuner::tune(std::span<const WaysTrial* const> trials, int architecture) {
  std::map<std::string, std::pair<const Trial*, std::optional<double>>> kernels;  // by key: microseconds
  const auto digits_of = [&](const Trial& kernel) { return to_hex(key(kernel, {}, architecture)); };
  for (const WaysTrial* trial : trials)
    for (const WaysTrial::Way& way : trial->ways)
      for (const Launches& launches : way.launches)
        kernels[digits_of(launches.kernel)].first = &launches.kernel;
  log(Channel::Timing, "tuning: compiles {} kernels for {} choices of parts", kernels.size(), trials.size());
  std::vector<TritonKernel> asked;
  for (const auto& [digits, kernel] : kernels) {
    const KernelText& text = kernel.first->candidates.front().text;
    asked.push_back({text.name, text.source, architecture});
  }
  const std::vector<std::optional<CompiledKernel>> compiled = compiler_.try_compile(asked);
  const std::unique_ptr<Stopwatch> stopwatch = make_stopwatch(driver_);
  if (!stopwatch) return;
  std::span<const std::optional<CompiledKernel>> rest = compiled;
  for (auto& [digits, kernel] : kernels) {
    kernel.second = times_of(driver_, *stopwatch, *kernel.first, rest.first(1)).front();
    rest = rest.subspan(1);
  }
  for (const WaysTrial* trial : trials) {
    std::vector<std::optional<double>> times;  // of ways
    for (const WaysTrial::Way& way : trial->ways) {
      std::optional<double>& sum = times.emplace_back(0);
      for (const Launches& launches : way.launches) {
        const std::optional<double> time = kernels.at(digits_of(launches.kernel)).second;
        sum = sum && time ? std::optional(*sum + *time * static_cast<double>(launches.count)) : std::nullopt;
      }
    }
    if (!times[0]) continue;
    const size_t best = best_of(times);
    keep(key(*trial, architecture), trial->ways[best].name);
    log(Channel::Timing, "tuning: {} take {:.1f} us {}{}", trial->subject, *times[best],
        trial->ways[best].name,
        best == 0 ? ", as chosen" : fmt::format("; {:.1f} us {}", *times[0], trial->ways[0].name));
  }
}

}  // namespace oxy::backend::cuda
