#include "x86/code/crash.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tenon::x86 {
namespace {

// Entries are written by one thread at a time, read by signal handlers at any moment, and never freed, only reused. A
// handler accesses no object but that of the code at its address, which exists as long as that code runs; others may be
// destroyed meanwhile. Therefore an entry has the addresses itself, and an entry that changes while it is read cannot
// be that of the running code.
class TableEntry {
 public:
  explicit TableEntry(TableEntry* next) : next_(next) {}
  TableEntry* next() const { return next_; }

  // Null: frees the entry.
  void set(const JitCode* code) {
    const uint64_t changes = changes_.load(std::memory_order_relaxed);
    changes_.store(changes + 1, std::memory_order_relaxed);
    code_.store(code, std::memory_order_release);
    begin_.store(code ? reinterpret_cast<uintptr_t>(code->address()) : 0, std::memory_order_release);
    bytes_.store(code ? code->object().bytes.size() : 0, std::memory_order_release);
    changes_.store(changes + 2, std::memory_order_release);
  }
  // The code that contains the address, or null.
  const JitCode* at(uintptr_t address) const {
    const uint64_t before = changes_.load(std::memory_order_acquire);
    const JitCode* code = code_.load(std::memory_order_acquire);
    const uintptr_t begin = begin_.load(std::memory_order_acquire);
    const size_t bytes = bytes_.load(std::memory_order_acquire);
    const bool changed = before % 2 != 0 || changes_.load(std::memory_order_relaxed) != before;
    return !changed && address >= begin && address - begin < bytes ? code : nullptr;
  }

 private:
  std::atomic<uint64_t> changes_{0};  // odd while it is being changed
  std::atomic<const JitCode*> code_{nullptr};
  std::atomic<uintptr_t> begin_{0};
  std::atomic<size_t> bytes_{0};
  TableEntry* const next_;
};
std::atomic<TableEntry*> table_head{nullptr};

// Lets writers find an entry without a search: processes create and destroy kernels by the hundred thousand.
struct TableIndex {
  std::mutex mutex;
  std::unordered_map<const JitCode*, TableEntry*> taken;
  std::vector<TableEntry*> unused;
};

TableIndex& table_index() {
  static auto* index = new TableIndex;  // never destroyed: code may outlive this file's statics
  return *index;
}

const JitCode* code_at(const void* address) {
  for (TableEntry* entry = table_head.load(std::memory_order_acquire); entry; entry = entry->next())
    if (const JitCode* code = entry->at(reinterpret_cast<uintptr_t>(address))) return code;
  return nullptr;
}

// Text of limited size; what does not fit is cut off.
class Line {
 public:
  Line(char* text, size_t size) : at_(text), end_(text + size - 1) { *at_ = 0; }
  Line& operator<<(std::string_view part) {
    for (const char c : part)
      if (at_ < end_) *at_++ = c;
    *at_ = 0;
    return *this;
  }
  Line& operator<<(uint64_t value) {
    char digits[16];
    size_t n = sizeof digits;
    do digits[--n] = "0123456789abcdef"[value % 16];
    while (value /= 16);
    return *this << "0x" << std::string_view(digits + n, sizeof digits - n);
  }

 private:
  char* at_;
  char* end_;
};

struct Watched {
  int number;
  std::string_view name;
  struct sigaction previous {};
};
std::array<Watched, 4> watched{{{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}}};

// Continues as if this handler had not been installed.
void go_on(Watched& signal_kind, int number, siginfo_t* info, void* context) {
  const struct sigaction& previous = signal_kind.previous;
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(number, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(number);
  // The default action happens when the instruction is executed again; a signal that was sent is sent again.
  sigaction(number, &previous, nullptr);
  if (info->si_code <= 0) raise(number);
}

void handle(int number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto* machine = static_cast<const ucontext_t*>(context);
  char place[512], text[700];
  describe_code_address(reinterpret_cast<const void*>(machine->uc_mcontext.gregs[REG_RIP]), place, sizeof place);
  for (Watched& kind : watched) {
    if (kind.number != number) continue;
    if (place[0] != 0) {
      Line line(text, sizeof text);
      line << "tenon: " << kind.name << " at address " << reinterpret_cast<uint64_t>(info->si_addr) << " in " << place
           << "\n";
      // Nothing can be done when standard error does not accept it.
      if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) errno = 0;
    }
    go_on(kind, number, info, context);
  }
  errno = saved_errno;
}

}  // namespace

void describe_code_address(const void* address, char* text, size_t size) {
  Line line(text, size);
  const JitCode* code = code_at(address);
  if (!code) return;
  const size_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(code->address());
  line << "kernel '" << code->object().name << "' + " << offset;
  if (const auto mark = code->object().marks.at(offset))
    line << ": " << mark->instruction << " (" << mark->label << ")";
}

void install_crash_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (Watched& kind : watched) {
      struct sigaction action {};
      action.sa_sigaction = handle;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      sigaction(kind.number, &action, &kind.previous);
    }
  });
}

void crash_table_add(const JitCode& code) {
  static const bool wanted = [] {
    const char* wish = secure_getenv("TENON_CRASH_HANDLER");
    return wish && std::string_view(wish) == "1";
  }();
  if (wanted) install_crash_handler();
  TableIndex& index = table_index();
  const std::lock_guard lock(index.mutex);
  TableEntry*& entry = index.taken[&code];
  if (!index.unused.empty()) {
    entry = index.unused.back();
    index.unused.pop_back();
    return entry->set(&code);
  }
  entry = new TableEntry(table_head.load());
  entry->set(&code);
  table_head.store(entry, std::memory_order_release);
}

void crash_table_remove(const JitCode& code) {
  TableIndex& index = table_index();
  const std::lock_guard lock(index.mutex);
  const auto found = index.taken.find(&code);
  if (found == index.taken.end()) return;
  found->second->set(nullptr);
  index.unused.push_back(found->second);
  index.taken.erase(found);
}

}  // namespace tenon::x86
