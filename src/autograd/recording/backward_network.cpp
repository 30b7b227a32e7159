#include "autograd/recording/backward_network.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/python_cpp_function.h>

#include <string>
#include <string_view>

#include "autograd/recording/engine.h"
#include "cpy/ref.h"

namespace oxy::autograd {
namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;

// Whether the node holds a tensor in this field of its Python class. Eager's nodes leave those undefined that
// only gradients nobody asks for would need.
bool is_saved(PyObject* node, std::string_view raw_field) {
  const std::string field(raw_field.substr(std::string_view("_raw").size()));
  const cpy::Ref value = cpy::Ref::steal(PyObject_GetAttrString(node, field.c_str()));
  if (!value) PyErr_Clear();  // it is freed or written to, so it was there
  return value.get() != Py_None;
}

template <class... Nodes>
bool is_one_of(Node& node) {
  return ((dynamic_cast<Nodes*>(&node) != nullptr) || ...);
}

// The Python class of a node of a formula names what the node keeps. The others that are named here have no
// such class, and keep nothing.
bool keeps_tensors(Node& node) {
  if (is_one_of<torch::autograd::AccumulateGrad, torch::autograd::Error, torch::autograd::CopyBackwards>(
          node))
    return false;
  if (const auto* program = dynamic_cast<const ProgramNode*>(&node)) return program->saves_tensors();
  const cpy::Ref object = cpy::Ref::steal(torch::autograd::functionToPyObject(node.getptr()));
  if (!object) {
    PyErr_Clear();
    return true;
  }
  const PyGetSetDef* field = Py_TYPE(object.get())->tp_getset;
  for (; field != nullptr && field->name != nullptr; ++field)
    if (std::string_view(field->name).starts_with("_raw_saved_") && is_saved(object.get(), field->name))
      return true;
  const bool is_described = Py_TYPE(object.get())->tp_name == node.name();
  return !is_described;
}

}  // namespace

BackwardNetwork::BackwardNetwork(const edge_list& places) {
  const auto id_for = [this](Node* node) {
    if (node == nullptr) return NetworkId();
    const auto [known, is_new] = id_of_.try_emplace(node, nodes_.next_id());
    if (is_new) nodes_.add(node);
    return known->second;
  };
  for (const Edge& place : places) id_for(place.function.get());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    std::vector<NetworkEdge> edges;
    for (const Edge& next : nodes_[NetworkId(n)]->next_edges())
      edges.push_back({id_for(next.function.get()), next.input_nr, PlaceId()});
    edges_.add(std::move(edges));
  }
  saves_.resize(nodes_.size());
  set_places(places);
}

void BackwardNetwork::set_places(const edge_list& places) {
  std::unordered_map<Edge, PlaceId> place_at;
  place_.clear();
  for (const Edge& place : places) place_at.emplace(place, place_.add(id_of_.at(place.function.get())));
  for (const NetworkId id : nodes_.ids())
    for (size_t i = 0; i < edges_[id].size(); ++i) {
      const auto place = place_at.find(nodes_[id]->next_edge(i));
      edges_[id][i].place = place == place_at.end() ? PlaceId() : place->second;
    }
}

NetworkId BackwardNetwork::id_of(Node* node) const {
  const auto known = id_of_.find(node);
  return known == id_of_.end() ? NetworkId() : known->second;
}

bool BackwardNetwork::saves_tensors(NetworkId id) {
  std::optional<bool>& saves = saves_[id];
  if (!saves) saves = keeps_tensors(*nodes_[id]);
  return *saves;
}

Stretch stretch_of(PlaceId place, const BackwardNetwork& network, const std::vector<bool>& ends) {
  Stretch stretch;
  stretch.behind.resize(network.places());
  stretch.has.resize(network.size());
  const auto reach = [&stretch](NetworkId id) {
    if (!id.is_valid() || stretch.has[id]) return;
    stretch.has[id] = true;
    stretch.nodes.push_back(id);
  };
  reach(network.begin_of(place));
  for (size_t n = 0; n < stretch.nodes.size(); ++n)
    for (const NetworkEdge& edge : network.edges(stretch.nodes[n])) {
      if (edge.place.is_valid() && ends[edge.place.index()])
        stretch.behind[edge.place.index()] = true;
      else
        reach(edge.to);
    }
  return stretch;
}

}  // namespace oxy::autograd
