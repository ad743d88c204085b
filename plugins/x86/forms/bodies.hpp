// FormBodies: what the forms of one body share.
#pragma once
#include <array>
#include <optional>
#include <utility>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// Each body is made when it is first requested. Not thread safe.
class FormBodies {
 public:
  // Use FormMaker::bodies_of().
  FormBodies(snippet::Body narrow, bool bytes_lose) : narrow_(std::move(narrow)), bytes_lose_(bytes_lose) {}
  // With the narrowest possible lanes, and with tables for functions of bytes. Forms are chosen by this body.
  const snippet::Body& body() const { return narrow_; }
  // With fewer checks. The variants: for forms that merge two sweeps, and for forms that contract.
  const snippet::Body& ready(bool merges, bool contracts);
  // In an earlier form, four adjacent vectors for byte lanes cost more by spills than they save. In 23 of 24 cases the
  // same holds for the next form, so it is not tried again.
  bool bytes_lose() const { return bytes_lose_; }
  void set_bytes_lose() { bytes_lose_ = true; }

 private:
  const snippet::Body narrow_;
  std::array<std::optional<snippet::Body>, 4> ready_;
  bool bytes_lose_;
};

}  // namespace tenon::x86
