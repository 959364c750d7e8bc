// SPDX-License-Identifier: Apache-2.0
// A host program may have chosen a locale that writes 5,5 for 5.5.
#pragma once

#include <halocline_test/run_command.hpp>

#include <clocale>
#include <cstdlib>
#include <fstream>

namespace halocline_test {

/// Such a locale, in force as long as this object exists.
class comma_locale {
  public:
    comma_locale() {
        std::ofstream(made_ / "source") << "LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"\"\ngrouping -1\n"
                                           "END LC_NUMERIC\n";
        run_command("localedef -c -i " + (made_ / "source") + " -f ANSI_X3.4-1968 " +
                    (made_ / "comma")); // with warnings
        ::setenv("LOCPATH", (made_ / "").c_str(), 1);
        std::setlocale(LC_NUMERIC, "comma");
    }
    ~comma_locale() {
        std::setlocale(LC_NUMERIC, "C");
        ::unsetenv("LOCPATH");
    }
    comma_locale(const comma_locale&) = delete;
    comma_locale& operator=(const comma_locale&) = delete;
    /// False: this system can't make locales.
    [[nodiscard]] bool in_force() const { return *std::localeconv()->decimal_point == ','; }

  private:
    scratch_folder made_;
};

} // namespace halocline_test
