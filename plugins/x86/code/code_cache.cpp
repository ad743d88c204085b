#include "x86/code/code_cache.hpp"

namespace tenon::x86 {

CodeKey code_key(std::string_view content, Isa isa) { return CodeKey::of(content, static_cast<uint64_t>(isa)); }

std::optional<CodeObject> CodeFiles::load(const CodeKey& key) const {
  const auto bytes = files_.load(key);
  if (!bytes) return std::nullopt;
  auto object = read_code_object(*bytes, key);
  if (object.ok()) return *std::move(object);
  if (object.error().code() != Code::not_found) files_.distrusted(key, object.error().message());
  return std::nullopt;
}

void CodeFiles::store(const CodeKey& key, const CodeObject& object) const {
  files_.store(key, write_code_object(object, key));
}

CodeCache& CodeCache::shared() {
  static CodeCache cache(CodeFiles(FileCache::default_folder()), JitMemory::shared());
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
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second->code;  // another thread won
  kept_.push_front({key, code, code->object().footprint()});
  by_key_[key] = kept_.begin();
  bytes_ += kept_.front().bytes;
  while (bytes_ > max_bytes_ && kept_.size() > 1) {
    bytes_ -= kept_.back().bytes;
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
