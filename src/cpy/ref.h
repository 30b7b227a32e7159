// Owned and borrowed references to Python objects. The GIL must be held where a Ref is copied or destroyed.
#pragma once

#include <Python.h>

#include <utility>

namespace oxy::cpy {

// A pointer to an object that somebody else keeps alive. May be null.
class Borrowed {
 public:
  constexpr Borrowed() = default;
  constexpr Borrowed(PyObject* object) : object_(object) {}  // implicit: every C API argument is one

  constexpr PyObject* get() const { return object_; }
  constexpr explicit operator bool() const { return object_ != nullptr; }
  friend constexpr bool operator==(Borrowed a, Borrowed b) { return a.object_ == b.object_; }

 private:
  PyObject* object_ = nullptr;
};

// An owned reference, or null. Destroying one may run arbitrary Python code (`__del__`, weak-reference
// callbacks).
class Ref {
 public:
  constexpr Ref() = default;
  constexpr Ref(std::nullptr_t) {}
  Ref(const Ref& other) noexcept : object_(Py_XNewRef(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ~Ref() { Py_XDECREF(object_); }

  // Assignment stores the new value before it drops the old one, so Python code that runs then sees the new
  // one.
  Ref& operator=(const Ref& other) noexcept {
    Py_XDECREF(std::exchange(object_, Py_XNewRef(other.object_)));
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    PyObject* taken = std::exchange(other.object_, nullptr);
    Py_XDECREF(std::exchange(object_, taken));
    return *this;
  }

  // Takes over a new reference, as functions of the C API return them. Null stays null.
  [[nodiscard]] static Ref steal(PyObject* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Makes a new reference to an object that somebody else holds.
  [[nodiscard]] static Ref borrow(PyObject* object) noexcept { return steal(Py_XNewRef(object)); }
  [[nodiscard]] static Ref borrow(Borrowed object) noexcept { return borrow(object.get()); }

  PyObject* get() const noexcept { return object_; }
  operator Borrowed() const noexcept { return Borrowed(object_); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  // Gives the reference to the caller. This Ref is null afterwards.
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  // A second reference for functions that steal one.
  [[nodiscard]] PyObject* new_reference() const noexcept { return Py_XNewRef(object_); }
  void reset() noexcept { Py_XDECREF(std::exchange(object_, nullptr)); }
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }

  // For `PyObject**` out-parameters, through which a C function gives a new reference. The Ref must be null.
  PyObject** out() noexcept { return &object_; }

  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }
  friend bool operator==(const Ref& a, PyObject* b) noexcept { return a.object_ == b; }

 private:
  PyObject* object_ = nullptr;
};

// An object that is made at the first call and never destroyed. `place` is a static pointer; `make` gives a
// new reference. (A static with an initialiser would not do: the initialiser runs Python code, another thread
// may get the GIL meanwhile, and would wait for the static while it holds the GIL.)
template <class Make>
PyObject* made_once(PyObject*& place, Make make) {
  if (place) return place;
  PyObject* made = make();
  if (place)
    Py_XDECREF(made);  // another thread was first
  else
    place = made;
  return place;
}

// While one lives, the pending exception is put away, so that other code may set and clear its own. It is set
// again at the end.
class SavedError {
 public:
  SavedError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~SavedError() { PyErr_Restore(type_, value_, traceback_); }
  SavedError(const SavedError&) = delete;
  SavedError& operator=(const SavedError&) = delete;

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

}  // namespace oxy::cpy
