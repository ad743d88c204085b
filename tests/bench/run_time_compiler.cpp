#include "bench/run_time_compiler.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <tenon/support/str.hpp>

namespace tenon::bench {
namespace {

// Exit status of a program with these arguments; its messages go to our standard streams.
Result<int> run_program(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return Error(Code::resource_exhausted, "no process for the compiler could be made");
  if (child == 0) {
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

Result<CompiledLoops> CompiledLoops::compile(const std::string& text, const std::vector<std::string>& flags) {
  const char* named = std::getenv("CXX");
  const std::string compiler = named && *named ? named : "c++";
  static std::atomic<int> compiled = 0;  // what is loaded is known by its path
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / str("tenon_loops_", getpid(), "_", compiled++);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string source = folder / "loops.cpp", library = folder / "loops.so";
  if (std::ofstream file(source); !(file << text))
    return Error(Code::io, str("cannot write ", source, "; set TMPDIR to a folder that can be written"));
  std::vector<std::string> arguments{compiler};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  for (const char* one : {"-std=c++20", "-shared", "-fPIC", "-o", library.c_str(), source.c_str(), "-lm"})
    arguments.emplace_back(one);
  TENON_TRY(status, run_program(arguments));
  if (status == 127)
    return Error(Code::not_found, str("no C++ compiler '", compiler, "' is at hand; install g++ or name one in CXX"));
  if (status != 0) return Error(Code::invalid_argument, str(compiler, " ended with ", status, " on ", source));
  // A library linked with -ffast-math sets flush-to-zero when it is loaded, for all code of the thread; the other
  // competitors do not use that.
  std::fenv_t rounding;
  std::fegetenv(&rounding);
  CompiledLoops made;
  made.library_ = std::shared_ptr<void>(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* handle) {
    if (handle) dlclose(handle);
  });
  if (!made.library_) return Error(Code::io, str("cannot load ", library, ": ", dlerror()));
  std::fesetenv(&rounding);
  std::filesystem::remove_all(folder, failed);
  return made;
}

CompiledLoop CompiledLoops::find(const std::string& name) const {
  return reinterpret_cast<CompiledLoop>(dlsym(library_.get(), name.c_str()));
}

}  // namespace tenon::bench
