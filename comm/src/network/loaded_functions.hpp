// SPDX-License-Identifier: Apache-2.0
// A shared library that is loaded on first use, and its functions. Never unloaded.
#pragma once

#include <dlfcn.h>
#include <string>
#include <type_traits>

namespace halocline::comm {

class loaded_functions {
  public:
    /// `file`: "libibverbs.so.1". `why_not` receives the first thing that is missing; otherwise it stays empty.
    loaded_functions(const char* file, std::string& why_not)
        : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)), file_(file), why_not_(why_not) {
        if (handle_ == nullptr) why_not_ = std::string(file) + " can't be loaded: " + dlerror();
    }
    /// function = the library's function of that name.
    template <class Function>
    void find(Function& function, const char* name) {
        if (handle_ == nullptr) return;
        function = reinterpret_cast<std::remove_reference_t<Function>>(dlsym(handle_, name));
        if (function == nullptr && why_not_.empty()) why_not_ = std::string(file_) + " has no " + name;
    }
    /// Like find(), but a missing function is no error: nullptr.
    template <class Function>
    void find_if_there(Function& function, const char* name) {
        if (handle_ != nullptr) function = reinterpret_cast<Function>(dlsym(handle_, name));
    }

  private:
    void* handle_;
    const char* file_;
    std::string& why_not_;
};

} // namespace halocline::comm
