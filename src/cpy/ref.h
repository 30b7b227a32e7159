// Owned and borrowed references to Python objects. The GIL is held wherever a Ref is copied or destroyed.
#pragma once

#include <Python.h>

#include <utility>

namespace oxy::cpy {

// A reference that somebody else keeps alive. May be null. No more than a pointer with a name that says so.
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

  // Assignment stores before it drops the old value: the destructor that then runs sees the new one.
  Ref& operator=(const Ref& other) noexcept {
    Py_XDECREF(std::exchange(object_, Py_XNewRef(other.object_)));
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    PyObject* taken = std::exchange(other.object_, nullptr);
    Py_XDECREF(std::exchange(object_, taken));
    return *this;
  }

  // Takes over a new reference: what functions of the C API that "return a new reference" return. Null stays
  // null.
  [[nodiscard]] static Ref steal(PyObject* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Makes a reference of our own to an object that somebody else holds.
  [[nodiscard]] static Ref borrow(PyObject* object) noexcept { return steal(Py_XNewRef(object)); }
  [[nodiscard]] static Ref borrow(Borrowed object) noexcept { return borrow(object.get()); }

  PyObject* get() const noexcept { return object_; }
  operator Borrowed() const noexcept { return Borrowed(object_); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  // Gives the reference away: the caller owns it now.
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  // A second reference for functions that steal one.
  [[nodiscard]] PyObject* new_reference() const noexcept { return Py_XNewRef(object_); }
  void reset() noexcept { Py_XDECREF(std::exchange(object_, nullptr)); }
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }

  // Where a C function writes a new reference to (`PyObject**` out-parameters). The Ref must be null.
  PyObject** out() noexcept { return &object_; }

  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }
  friend bool operator==(const Ref& a, PyObject* b) noexcept { return a.object_ == b; }

 private:
  PyObject* object_ = nullptr;
};

// An object that is made once and never destroyed. Not as the initialiser of a static: what runs Python code
// may let another thread take the GIL, which would wait for the static while it holds the GIL.
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

// Keeps the pending exception while code runs that may set or clear one of its own, and puts it back.
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
