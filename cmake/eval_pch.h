// Precompiled for the eval layer: what eval/state/interpreter.h takes from lower layers. Headers of eval
// itself do not belong here, since a change of one would make all files wait for this.
#include "tensor_pch.h"

#include "autograd/recording/joint.h"
#include "bytecode/decode.h"
#include "cpy/set.h"
#include "guards/guard_set.h"
#include "runtime/device/autocast.h"
#include "trace/recorder/recorder.h"
