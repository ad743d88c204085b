// FormBodies: what the forms of one body have in common.
#pragma once
#include <array>
#include <optional>

#include <tenon/snippet/body/body.hpp>

namespace tenon::x86 {

// Made when it is asked for first. One thread.
class FormBodies {
 public:
  explicit FormBodies(const snippet::Body& as_it_is);
  // With lanes as narrow as they may be (body/narrow_ports.hpp): what forms are chosen by.
  const snippet::Body& body() const { return narrow_; }
  // Without what the machine need not look at; of forms that merge two sweeps into one, and of those that contract.
  const snippet::Body& ready(bool merges, bool contracts);

 private:
  const snippet::Body narrow_;
  std::array<std::optional<snippet::Body>, 4> ready_;
};

}  // namespace tenon::x86
