// ComputeSource: builds the source of a compute kernel around the work of one item.
//
//   ComputeSource source(request, target);
//   source.load("X", 0, kF32);               // X(i): element i of operand 0 as a float; XV(i): `lanes` of them
//   source.store("Y", 0, kF32);              // Y(i, v)
//   source.define("R", 2);
//   return source.kernel("Y(item, X(item / n[0]));", launch);
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <tenon/support/str.hpp>

#include "opencl/compute/compute.hpp"
#include "opencl/compute/epilogue.hpp"

namespace tenon::opencl {

// The type that elements are computed in: f32 for narrower floats, 32 bits for narrower integers and booleans.
ElementType work_type_of(ElementType element);
// The unsigned integer type of the same size, for elements that are only moved. Invalid unless that is 1, 2, 4 or 8
// bytes.
ElementType raw_type_of(ElementType element);
// Sums are accumulated in doubles where the device has them.
ElementType sum_type_of(ElementType work, const ComputeTarget& target);

// A function NAME(x) that reduces the lanes of a vector by halving; `both` combines two halves: an operator such as
// "+", or the name of a function.
std::string lanes_function(std::string_view name, std::string_view both, ElementType work, int lanes);

class ComputeSource {
 public:
  ComputeSource(const irgen::KernelRequest& request, const ComputeTarget& target);

  // Sets the number of elements that NAMEV(i) reads.
  void vectors_of(int lanes) { lanes_ = lanes; }
  // Defines functions of the upper-case name: NAME(i) and NAMEV(i) with elements of operand `i` as `work`. Errors of
  // these functions, for element types that the device does not have, are returned by kernel().
  void load(std::string_view name, size_t operand, ElementType work);
  // Defines NAME_TYPE, the type of pointers NAME_AT(i) to element i, and NAME_FROM(p, i): element i from a pointer on.
  // For inner loops with several pointers: compilers vectorise sums of indices, and then extract their lanes again.
  void load_by_pointer(std::string_view name, size_t operand, ElementType work);
  // Defines NAME(i, value), with the value as `work`.
  void store(std::string_view name, size_t result, ElementType work);
  // The same, and GET_NAME(i), which reads what was stored.
  void load_stored(std::string_view name, size_t result, ElementType work);
  // NAME(i) is `none` where the operator has no such operand; stores are dropped where it has no such result.
  void load_optional(std::string_view name, size_t operand, ElementType work, std::string_view none);
  void store_optional(std::string_view name, size_t result, ElementType work);
  // Elements as raw bits.
  void load_raw(std::string_view name, size_t operand);
  void store_raw(std::string_view name, size_t result);

  template <class T>
  void define(std::string_view name, const T& value) {
    defines_ += str("#define ", name, " ", value, "\n");
  }
  // A float constant, written by its bits.
  void define_float(std::string_view name, double value);
  // The same, as a double where sums are accumulated in doubles.
  void define_wide(std::string_view name, double value);
  // Adds functions before the kernel.
  void functions(std::string_view text);
  // Adds lines at the beginning of the kernel, for local memory.
  void local(std::string_view text) { local_ += text; }
  // The body uses PLACE, FINISH, FINISH_WHOLE and IN_LINE (epilogue.hpp) instead of stores; vectors x have `lanes`.
  void finish(const Epilogue& epilogue, int lanes);
  // An item is the work of a whole work group: of work item LOCAL_ID of LOCAL_SIZE; SYNC; is a barrier.
  void of_group() { of_group_ = true; }
  // The body uses the sub-groups of such work groups.
  void use_sub_groups() { uses_sub_groups_ = true; }
  // In the body, FAULT; reports invalid data.
  void can_fail() { can_fail_ = true; }

  // `body`: the work of `item`, which may read n[].
  Result<ComputeKernel> kernel(std::string_view body, std::function<Result<ComputeLaunch>(const CallShapes&)> launch);

 private:
  struct Access {
    std::string index, vector;  // texts in which i is the first element
  };
  struct Function {
    std::string text;
    bool plain;  // without comments of its own
  };
  // A name in the source, and its meaning for a reader: "reads %x".
  struct Meaning {
    std::string name, text;
  };
  void means(std::string_view name, std::string_view what, const Value* value);
  // With ComputeTarget::comments: adds to each line the operator, and what the line reads and writes.
  std::string commented(std::string_view text) const;
  Access access(std::string_view port, ElementType element, ElementType work);
  void checked(ElementType element);
  std::string element_of(size_t operand) const;

  const irgen::KernelRequest& request_;
  const ComputeTarget& target_;
  std::string defines_, local_, why_not_;
  std::vector<Function> functions_;
  std::vector<Meaning> meanings_;
  std::optional<Epilogue> epilogue_;
  size_t rank_ = 0;  // of the epilogue's space
  int lanes_ = 16;
  bool can_fail_ = false, of_group_ = false, uses_sub_groups_ = false;
};

}  // namespace tenon::opencl
