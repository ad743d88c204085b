// Result<T>: a value or an Error. Error: a code, a sentence, and one frame per level that it passed on its way up.
//
//   TENON_TRY(model, load(path), "loading ", path);      // declares `model`, or returns the error with a frame added
//   TENON_OK(verify(graph), "the verifier");              // the same for Result<void>
//   return error(Code::invalid_argument, "axis ", axis, " is outside [", -rank, ", ", rank - 1, "]");
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenon/support/check.hpp>
#include <tenon/support/export.hpp>
#include <tenon/support/str.hpp>

namespace tenon {

enum class Code : uint8_t {
  invalid_argument,    // the caller's value is wrong: model, YAML, option, shape
  not_found,           // a named thing does not exist
  already_exists,      // a name is taken
  unsupported,         // well formed, but this target or build cannot do it
  resource_exhausted,  // memory, scratchpad, budget, nesting
  io,                  // the operating system reported an error
  parse,               // text or bytes that do not follow their grammar
  plugin,              // a plugin broke its contract
  internal,            // a fault in Tenon itself; please report it
  cancelled,
};
TENON_API std::string_view code_name(Code code);

// One pointer wide, so that a Result<T> is hardly larger than its T.
// Nothing is inline: g++ 12 gives false warnings about copies of strings that it has inlined (GCC bugs 105329, 105651),
// and everyone who returns an error would see them.
class TENON_API Error {
 public:
  Error(Code code, std::string message);
  Error(const Error& other);
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept;
  ~Error();

  Code code() const;
  const std::string& message() const;
  // Innermost first.
  const std::vector<std::string>& frames() const;
  [[nodiscard]] Error with_frame(std::string frame) &&;
  // "message\n  in frame\n  in frame".
  std::string to_string() const;

 private:
  struct Parts;
  const Parts& parts() const;
  std::unique_ptr<Parts> parts_;
};

template <class... Parts>
Error error(Code code, const Parts&... parts) {
  return Error(code, str(parts...));
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  template <class U>
  requires(std::convertible_to<U&&, T> && !std::same_as<std::remove_cvref_t<U>, Result> &&
           !std::same_as<std::remove_cvref_t<U>, T> && !std::same_as<std::remove_cvref_t<U>, Error>) Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Checked, as error() is: accessing what is absent aborts with the error's text.
  T& value() & { return require(), std::get<0>(state_); }
  const T& value() const& { return require(), std::get<0>(state_); }
  T&& value() && { return require(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return require_error(), std::get<1>(state_); }
  Error&& error() && { return require_error(), std::get<1>(std::move(state_)); }

 private:
  void require_error() const { TENON_CHECK(!ok(), "error of a Result that holds a value"); }
  void require() const { TENON_CHECK(ok(), "value of a failed Result: ", std::get<1>(state_).to_string()); }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return require_error(), *error_; }
  Error&& error() && { return require_error(), *std::move(error_); }

 private:
  void require_error() const { TENON_CHECK(!ok(), "error of a Result that holds a value"); }
  std::optional<Error> error_;
};

namespace detail {
inline Error framed(Error error) { return error; }
template <class... Parts>
requires(sizeof...(Parts) > 0) Error framed(Error error, const Parts&... parts) {
  return std::move(error).with_frame(str(parts...));
}
}  // namespace detail

#define TENON_CONCAT_(a, b) a##b
#define TENON_CONCAT(a, b) TENON_CONCAT_(a, b)
#define TENON_TRY_(tmp, name, expression, ...)                                         \
  auto tmp = (expression);                                                             \
  if (!tmp.ok()) [[unlikely]]                                                          \
    return ::tenon::detail::framed(std::move(tmp).error() __VA_OPT__(, ) __VA_ARGS__); \
  auto name = std::move(tmp).value()
// Declares `name` with the value, or returns the error with a frame made of the further arguments.
#define TENON_TRY(name, expression, ...) \
  TENON_TRY_(TENON_CONCAT(tenon_try_, __LINE__), name, expression __VA_OPT__(, ) __VA_ARGS__)
// The same for an expression whose value is not needed.
#define TENON_OK(expression, ...)                                                              \
  do {                                                                                         \
    if (auto tenon_ok_ = (expression); !tenon_ok_.ok()) [[unlikely]]                           \
      return ::tenon::detail::framed(std::move(tenon_ok_).error() __VA_OPT__(, ) __VA_ARGS__); \
  } while (0)

}  // namespace tenon
