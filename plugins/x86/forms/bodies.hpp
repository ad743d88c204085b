// FormBodies: what the forms of one body have in common.
#pragma once
#include <array>
#include <optional>
#include <utility>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// Made when it is asked for first. One thread.
class FormBodies {
 public:
  // FormMaker::bodies_of() makes it of a body as it is.
  FormBodies(snippet::Body narrow, bool bytes_lose) : narrow_(std::move(narrow)), bytes_lose_(bytes_lose) {}
  // With lanes as narrow as they may be, and functions of bytes as tables: what forms are chosen by.
  const snippet::Body& body() const { return narrow_; }
  // Without what the machine need not look at; of forms that merge two sweeps into one, and of those that contract.
  const snippet::Body& ready(bool merges, bool contracts);
  // Four vectors side by side, for lanes of bytes, have cost more by spills than they save, in a form made before: so
  // they will in the next, with a chance of 23 in 24, and are not tried again.
  bool bytes_lose() const { return bytes_lose_; }
  void set_bytes_lose() { bytes_lose_ = true; }

 private:
  const snippet::Body narrow_;
  std::array<std::optional<snippet::Body>, 4> ready_;
  bool bytes_lose_;
};

}  // namespace tenon::x86
