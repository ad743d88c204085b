// Random tensors come from the operator cases (tools/op-cases), which tests and tools share.
#pragma once
#include "../../tools/op-cases/random_tensor.hpp"
