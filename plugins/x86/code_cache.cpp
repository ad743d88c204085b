#include "x86/code_cache.hpp"

#include <tenon/support/hash.hpp>

namespace tenon::x86 {

CodeKey code_key(std::string_view content, Isa isa) {
  const auto bytes = std::as_bytes(std::span(content));
  const auto seed = static_cast<uint64_t>(isa);
  return {hash_mix(hash_bytes(bytes, seed), content.size()), hash_mix(hash_bytes(bytes, ~seed), fnv1a(content, seed))};
}

std::string CodeKey::to_string() const {
  std::string text;
  for (const uint64_t word : {high, low})
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

CodeCache& CodeCache::shared() {
  static CodeCache cache(CodeFiles(CodeFiles::default_folder()), JitMemory::shared());
  return cache;
}

std::shared_ptr<const JitCode> CodeCache::find(const CodeKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found->second);
  ++counts_.from_process;
  return found->second->code;
}

std::shared_ptr<const JitCode> CodeCache::keep(const CodeKey& key, std::shared_ptr<const JitCode> code) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second->code;  // another was quicker
  kept_.push_front({key, code});
  by_key_[key] = kept_.begin();
  bytes_ += code->object().bytes.size();
  while (bytes_ > max_bytes_ && kept_.size() > 1) {
    bytes_ -= kept_.back().code->object().bytes.size();
    by_key_.erase(kept_.back().key);
    kept_.pop_back();
  }
  return code;
}

Result<std::shared_ptr<const JitCode>> CodeCache::get(const CodeKey& key, const Make& make) {
  if (std::shared_ptr<const JitCode> code = find(key)) return code;
  std::optional<CodeObject> object = files_.load(key);
  const bool from_file = object.has_value();
  if (!from_file) {
    TENON_TRY(made, make());
    files_.store(key, made);
    object = std::move(made);
  }
  TENON_TRY(code, memory_.add(std::make_shared<const CodeObject>(*std::move(object))));
  {
    const std::lock_guard lock(mutex_);
    ++(from_file ? counts_.from_files : counts_.made);
  }
  return keep(key, std::move(code));
}

CodeCache::Counts CodeCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace tenon::x86
