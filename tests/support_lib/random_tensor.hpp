// Tensors of random numbers are those of the operator cases (tools/op-cases), which tests and tools share.
#pragma once
#include "../../tools/op-cases/random_tensor.hpp"
