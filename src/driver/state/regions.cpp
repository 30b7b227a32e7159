#include "driver/state/regions.h"

namespace oxy::driver {
namespace {

RegionWatch* watching = nullptr;

}  // namespace

RegionWatch::RegionWatch() {
  if (!watching) watching = this;
}

RegionWatch::~RegionWatch() {
  if (watching == this) watching = nullptr;
}

RegionWatch* RegionWatch::current() {
  return watching;
}

}  // namespace oxy::driver
