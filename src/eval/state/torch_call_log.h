// The log of torch calls: the torch functions and methods that the interpreter calls for real. It becomes the
// TorchProgram that a backend of the user's is given.
#pragma once

#include <Python.h>

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpy/ref.h"
#include "eval/rebuild/torch_program.h"
#include "trace/recorder/recorder.h"

namespace oxy::eval {

// Every recorded operator must belong to a noted call. Every tensor argument of a noted call must be a graph
// input or a result of an earlier call. Otherwise there is no TorchProgram, and problem() says why.
class TorchCallLog {
 public:
  explicit TorchCallLog(const trace::Recorder& recorder) : recorder_(recorder) {}

  struct Pending {
    TorchCall call;
    std::string problem;    // with an argument; counts only if end() notes the call
    int64_t operators = 0;  // recorded before the call
  };
  // Called before and after a call of torch. A call that records no operator and returns no new tensor
  // (`x.dim()`) is left out.
  Pending begin(PyObject* callable, std::span<const cpy::Ref> positional,
                std::span<const std::pair<cpy::Ref, cpy::Ref>> keywords = {});
  void end(Pending pending, PyObject* result);

  void count_operator() { ++operators_; }

  // `outputs`: trace tensors. Nothing if there is a problem().
  std::optional<TorchProgram> finish(std::span<PyObject* const> outputs);
  const std::string& problem() const { return problem_; }

 private:
  std::optional<TorchValue> find(PyObject* tensor) const;
  TorchArgument argument(PyObject* object, std::string& problem) const;
  bool has_new_tensor(PyObject* object) const;
  void name_tensors(PyObject* object, const TorchValue& value);
  void check_operators();
  void refuse(std::string reason);

  const trace::Recorder& recorder_;
  TorchProgram program_;
  std::string problem_;
  int64_t operators_ = 0;                             // recorded
  int64_t noted_ = 0;                                 // those of them that belong to noted calls
  std::unordered_map<PyObject*, TorchValue> values_;  // the latest call that returned a tensor
  std::vector<cpy::Ref> keep_alive_;                  // their keys
};

}  // namespace oxy::eval
