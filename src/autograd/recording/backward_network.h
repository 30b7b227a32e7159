// Autograd's graph behind the results of a recording: its nodes have numbers, and each edge says whether it
// ends at a place where a gradient may come in. Searches from many places follow the same edges.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "base/id.h"

namespace oxy::autograd {

struct NetworkEdge;
using NetworkId = Id<torch::autograd::Node>;
using PlaceId = Id<torch::autograd::Edge>;  // where a gradient comes in

struct NetworkEdge {
  NetworkId to;  // none: the edge leads nowhere
  uint32_t input;
  PlaceId place;  // none: no gradient comes in here
};

class BackwardNetwork {
 public:
  // What lies behind the places, which are the first ones. They lead somewhere.
  explicit BackwardNetwork(const torch::autograd::edge_list& places);

  // Other places, all of them in what lies behind the first ones.
  void set_places(const torch::autograd::edge_list& places);

  size_t places() const { return place_.size(); }
  size_t size() const { return nodes_.size(); }
  NetworkId begin_of(PlaceId place) const { return place_[place]; }
  IdRange<NetworkId> ids() const { return nodes_.ids(); }
  torch::autograd::Node& node(NetworkId id) const { return *nodes_[id]; }
  const std::vector<NetworkEdge>& edges(NetworkId id) const { return edges_[id]; }
  // None where no gradient of a place flows.
  NetworkId id_of(torch::autograd::Node* node) const;
  // Whether the node keeps tensors, which a backward pass frees: to go through it again is an error then.
  // Needs the GIL.
  bool saves_tensors(NetworkId id);

 private:
  IdVector<NetworkId, torch::autograd::Node*> nodes_;
  IdVector<NetworkId, std::vector<NetworkEdge>> edges_;
  IdVector<NetworkId, std::optional<bool>> saves_;
  std::unordered_map<torch::autograd::Node*, NetworkId> id_of_;
  IdVector<PlaceId, NetworkId> place_;
};

// What a gradient that comes in at one place flows through.
struct Stretch {
  std::vector<NetworkId> nodes;
  IdVector<NetworkId, bool> has;
  std::vector<bool> behind;  // by place: it is where the stretch ends
};

// A gradient goes on through places for which `ends` is false.
Stretch stretch_of(PlaceId place, const BackwardNetwork& network, const std::vector<bool>& ends);

}  // namespace oxy::autograd
