// caught: runs foreign code, such as a plugin's pass or shape rule, and turns its exceptions into errors.
#pragma once
#include <exception>
#include <new>

#include <tenon/support/result.hpp>

namespace tenon {

// Returns what `body` returns, which is a Result. If `body` throws, returns an error that says who threw what.
//
//   TENON_TRY(change, caught([&] { return pass.run(graph); }, "pass '", pass.name, "'"));
template <class Body, class... Who>
auto caught(const Body& body, const Who&... who) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return error(Code::resource_exhausted, who..., " ran out of memory");
  } catch (const std::exception& thrown) {
    return error(Code::internal, who..., " threw: ", thrown.what(), "; errors are returned, as a tenon::Error");
  } catch (...) {
    return error(Code::internal, who..., " threw something that is no std::exception; errors are returned, as a ",
                 "tenon::Error");
  }
}

}  // namespace tenon
