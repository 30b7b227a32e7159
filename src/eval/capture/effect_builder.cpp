#include "eval/capture/effect_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/capture/template_builder.h"
#include "eval/externals/external_containers.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

using guards::kNoSource;
using guards::SourceKind;

namespace {

Template build_item(Interpreter& interpreter, TemplateBuilder& templates, PyObject* item) {
  auto unread = interpreter.shadows.unread_items.find(item);
  return unread == interpreter.shadows.unread_items.end() ? templates.build(item)
                                                          : templates.external(unread->second.source);
}

// Makes the effects on one object from its shadow.
class EffectBuilder {
 public:
  EffectBuilder(Interpreter& interpreter, TemplateBuilder& templates, const Shadow& shadow,
                std::vector<Effect>& effects)
      : interpreter_(interpreter), templates_(templates), shadow_(shadow), effects_(effects) {}

  void build() {
    PyObject* object = shadow_.object.get();
    if (PyList_Check(object) || is_deque_type(Py_TYPE(object)))
      sequence();
    else if (PyAnySet_Check(object))
      set();
    else if (PyDict_Check(object) && shadow_.copy)
      dict();
    else
      writes();
  }

 private:
  Effect& add(EffectKind kind) {
    Effect& effect = effects_.emplace_back();
    effect.kind = kind;
    effect.object = templates_.build(shadow_.object.get());
    return effect;
  }

  void add_item(PyObject* key, PyObject* value) {
    Effect& effect = add(value ? EffectKind::SetItem : EffectKind::DeleteItem);
    effect.key = templates_.build(key);
    effect.value = templates_.build(value);
  }

  static bool same(PyObject* a, PyObject* b) { return a == b || guards::same_constant(a, b); }

  void writes() {
    PyObject* object = shadow_.object.get();
    if (shadow_.emptied) add(EffectKind::Clear);
    for (const auto& [key, value] : shadow_.writes) {
      if (!shadow_.emptied && is_needless(key.get(), value.get())) continue;
      if (PyDict_Check(object)) {
        add_item(key.get(), value.get());
      } else if (PyCell_Check(object)) {
        add(EffectKind::SetCell).value = templates_.build(value.get());
      } else {
        Effect& effect = add(value ? EffectKind::SetAttribute : EffectKind::DeleteAttribute);
        effect.key = templates_.build(key.get());
        effect.value = templates_.build(value.get());
      }
    }
  }

  // Whether a write puts back the value that is there already, if that value is guarded.
  bool is_needless(PyObject* key, PyObject* value) {
    PyObject* object = shadow_.object.get();
    SourceId place = kNoSource;
    PyObject* current = nullptr;
    if (PyCell_Check(object)) {
      current = PyCell_GET(object);
      place =
          interpreter_.guards().derived(SourceKind::CellContents, interpreter_.externals.source_of(object));
    } else if (PyDict_Check(object) && guards::is_constant(key)) {
      current = PyDict_GetItem(object, key);
      place = interpreter_.guards().dict_item(interpreter_.externals.source_of(object), key);
    } else {
      return false;
    }
    const auto once = std::count_if(shadow_.writes.begin(), shadow_.writes.end(), [&](const auto& write) {
      return guards::same_constant(write.first.get(), key);
    });
    const auto known = interpreter_.externals.admitted.find(place);
    if (once != 1 || known == interpreter_.externals.admitted.end()) return false;
    // A varying number is another one at the next call.
    if (is_varying_number(known->second.get())) return value == known->second.get();
    auto tensor = interpreter_.externals.external_of.find(value);
    return current == value ||
           (tensor != interpreter_.externals.external_of.end() && tensor->second == current);
  }

  void dict() {
    PyObject* copy = shadow_.copy.get();
    if (shadow_.emptied) add(EffectKind::Clear);
    const std::vector<Ref>& before = shadow_.before;
    Ref places = Ref::steal(PyDict_New());
    for (size_t i = 0; i < before.size(); i += 2)
      PyDict_SetItem(places.get(), before[i].get(), Ref::steal(PyLong_FromSize_t(i)).get());
    // Entries that were never deleted come first, in their order. The others were added behind them.
    std::vector<std::pair<PyObject*, PyObject*>> set, added;
    std::vector<bool> kept(before.size());
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    size_t next = 0;
    while (PyDict_Next(copy, &position, &key, &value)) {
      PyObject* place = PyDict_GetItem(places.get(), key);
      const size_t i = place ? PyLong_AsSize_t(place) : 0;
      if (!place || !added.empty() || i < next || before[i] != key) {
        added.emplace_back(key, value);
        continue;
      }
      next = i + 2;
      kept[i] = true;
      if (!same(before[i + 1].get(), value)) set.emplace_back(key, value);
    }
    for (size_t i = 0; i < before.size(); i += 2)
      if (!kept[i]) add_item(before[i].get(), nullptr);
    for (const auto& [k, v] : set) add_item(k, v);
    for (const auto& [k, v] : added) add_item(k, v);
  }

  void set() {
    if (shadow_.emptied) add(EffectKind::Clear);
    for (const auto& [item, value] : shadow_.writes)
      add(value ? EffectKind::Add : EffectKind::Discard).key = templates_.build(item.get());
  }

  std::vector<Template> items(const std::vector<Ref>& now, size_t begin, size_t end) {
    std::vector<Template> result;
    for (size_t i = begin; i < end; ++i) result.push_back(build_item(interpreter_, templates_, now[i].get()));
    return result;
  }

  void sequence() {
    const bool list = PyList_Check(shadow_.object.get());
    Ref fast = Ref::steal(shadow_.copy ? PySequence_List(shadow_.copy.get()) : PyList_New(0));
    std::vector<Ref> now, before;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(fast.get()); ++i)
      now.push_back(known_item(interpreter_, PyList_GET_ITEM(fast.get(), i)));
    if (!shadow_.whole && !shadow_.emptied) {
      if (!now.empty()) add(EffectKind::Extend).items = items(now, 0, now.size());
      return;
    }
    for (const Ref& item : shadow_.before) before.push_back(known_item(interpreter_, item.get()));
    if (shadow_.emptied && !list) {
      add(EffectKind::Clear);
      if (!now.empty()) add(EffectKind::Extend).items = items(now, 0, now.size());
      return;
    }
    const auto equal = [](const Ref& a, const Ref& b) { return same(a.get(), b.get()); };
    const size_t shorter = std::min(now.size(), before.size());
    size_t head = 0, tail = 0;
    while (head < shorter && equal(now[head], before[head])) ++head;
    while (tail < shorter - head && equal(now[now.size() - 1 - tail], before[before.size() - 1 - tail]))
      ++tail;
    const bool changed = list || shadow_.emptied || has_changed(shadow_.witness.get());
    if (!shadow_.emptied && head == now.size() && head == before.size()) {
      if (!list && changed) add(EffectKind::Touch);
      return;
    }
    if (!changed) {
      for (size_t i = 0; i < now.size(); ++i) {
        if (equal(now[i], before[i])) continue;
        Effect& effect = add(EffectKind::SetPlace);
        effect.begin = static_cast<Py_ssize_t>(i);
        effect.items = items(now, i, i + 1);
      }
      return;
    }
    if (list) {
      Effect& effect = add(EffectKind::Slice);
      effect.begin = static_cast<Py_ssize_t>(head);
      effect.end = shadow_.emptied ? PY_SSIZE_T_MAX : static_cast<Py_ssize_t>(before.size() - tail);
      effect.items = items(now, head, now.size() - tail);
      return;
    }
    // The longest run of old items that are still there, at the front or at the back.
    size_t left = 0, front = 0, run = head;
    for (size_t from = 1; from < before.size() && before.size() - from > run; ++from) {
      size_t length = 0;
      while (from + length < before.size() && length < now.size() &&
             equal(before[from + length], now[length]))
        ++length;
      if (length > run) left = from, front = 0, run = length;
    }
    for (size_t at = 1; at < now.size() && now.size() - at > run; ++at) {
      size_t length = 0;
      while (at + length < now.size() && length < before.size() && equal(now[at + length], before[length]))
        ++length;
      if (length > run) left = 0, front = at, run = length;
    }
    Effect& effect = add(EffectKind::Window);
    effect.begin = static_cast<Py_ssize_t>(left);
    effect.end = static_cast<Py_ssize_t>(before.size() - left - run);
    effect.front = items(now, 0, front);
    effect.items = items(now, front + run, now.size());
  }

  Interpreter& interpreter_;
  TemplateBuilder& templates_;
  const Shadow& shadow_;
  std::vector<Effect>& effects_;
};

}  // namespace

void build_effects(Interpreter& interpreter, TemplateBuilder& templates) {
  for (const Shadow& s : interpreter.shadows.all)
    if (s.written) EffectBuilder(interpreter, templates, s, interpreter.capture->effects).build();
}

}  // namespace oxy::eval
