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
constexpr double kWorthIt = 0.98;          // of the chosen shape's time: less is noise

std::string text_of(const LaunchShape& shape) {
  return fmt::format("{} {} {} {} {} {} {} {}", static_cast<int>(shape.form), shape.rows, shape.columns,
                     shape.is_persistent, shape.tile_loop, shape.tile_loops, shape.warps, shape.stages);
}

std::string description(const LaunchShape& shape) {
  std::string text = fmt::format("{} x {} by {} warps", shape.rows, shape.columns, shape.warps);
  if (shape.form == Form::Rows && !shape.is_persistent) text += " in steps";
  if (shape.stages > 0) text += fmt::format(", {} stages", shape.stages);
  return text;
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

Hash128 Tuner::key(const Trial& trial, int architecture) const {
  const Candidate& first = trial.candidates.front();
  Message parts{std::string(kFormat), card_name(driver_, 0),
                to_hex(compiler_.key({first.text.name, first.text.source, architecture})),
                std::to_string(first.programs)};
  for (const int64_t bytes : trial.operands.bytes) parts.push_back(std::to_string(bytes));
  for (const int64_t size : trial.operands.sizes) parts.push_back(std::to_string(size));
  for (const Candidate& candidate : trial.candidates) parts.push_back(text_of(candidate.shape));
  return hash128(encode(parts));
}

std::optional<size_t> Tuner::known(const Hash128& key, const Trial& trial) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = choices_.try_emplace(to_hex(key));
  std::optional<std::string>& choice = entry->second;
  if (is_new && store_) choice = store_->find(key);
  if (!choice) return std::nullopt;
  const auto found =
      std::ranges::find_if(trial.candidates, [&](const Candidate& c) { return text_of(c.shape) == *choice; });
  if (found == trial.candidates.end()) return std::nullopt;
  return static_cast<size_t>(found - trial.candidates.begin());
}

void Tuner::keep(const Hash128& key, const LaunchShape& shape) {
  {
    const std::lock_guard lock(mutex_);
    choices_[to_hex(key)] = text_of(shape);
  }
  if (store_) store_->keep(key, text_of(shape));
}

std::vector<size_t> Tuner::fastest(std::span<const Trial> trials, int architecture) {
  std::vector<Hash128> keys;
  std::map<std::string, size_t> open;  // a trial of each key that is not known: layers have the same kernels
  for (size_t t = 0; t < trials.size(); ++t) {
    keys.push_back(key(trials[t], architecture));
    if (trials[t].candidates.size() > 1 && !known(keys[t], trials[t])) open.try_emplace(to_hex(keys[t]), t);
  }
  std::vector<const Trial*> asked;
  for (const auto& [digits, t] : open) asked.push_back(&trials[t]);
  if (!asked.empty()) tune(asked, architecture);
  std::vector<size_t> fastest;
  for (size_t t = 0; t < trials.size(); ++t) fastest.push_back(known(keys[t], trials[t]).value_or(0));
  return fastest;
}

void Tuner::tune(std::span<const Trial* const> trials, int architecture) {
  std::vector<TritonKernel> asked;
  for (const Trial* trial : trials)
    for (const auto& [shape, text, programs] : trial->candidates)
      asked.push_back({text.name, text.source, architecture});
  log(Channel::Timing, "tuning: compiles {} candidates of {} kernels", asked.size(), trials.size());
  const std::vector<std::optional<CompiledKernel>> compiled = compiler_.try_compile(asked);
  const std::unique_ptr<Stopwatch> stopwatch = Stopwatch::make(driver_);
  if (!stopwatch) {
    log(Channel::Timing, "tuning: the device gives no memory or stream for trials; nothing is tuned");
    return;
  }
  std::span<const std::optional<CompiledKernel>> rest = compiled;
  for (size_t k = 0; k < trials.size(); ++k) {
    const Trial& trial = *trials[k];
    const auto times = times_of(driver_, *stopwatch, trial, rest.first(trial.candidates.size()));
    rest = rest.subspan(trial.candidates.size());
    if (!times[0]) continue;
    const size_t best = best_of(times);
    keep(key(trial, architecture), trial.candidates[best].shape);
    log(Channel::Timing, "tuning {} of {}: {} takes {:.1f} us as {}{}", k + 1, trials.size(),
        trial.candidates[0].text.name, *times[best], description(trial.candidates[best].shape),
        best == 0 ? ", as chosen"
                  : fmt::format("; {:.1f} us as {}", *times[0], description(trial.candidates[0].shape)));
  }
}

}  // namespace oxy::backend::cuda
