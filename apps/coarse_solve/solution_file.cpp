// SPDX-License-Identifier: Apache-2.0
#include "solution_file.hpp"

#include <halocline/base/version.h>
#include <halocline/dirac/spinor_field.hpp>
#include <halocline_app/output_file.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace halocline::app {
namespace {

std::string scientific(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3e", value);
    return text;
}

void write(const comm::job& j, const problem& task, const settings& s, const lattice::field<double>& x,
           const run_result& result, const std::string& path) {
    dirac::write_spinors(j, task.cut, x,
                         {{"field", "solution x of D x = b, D the Wilson-clover operator"},
                          {"program", "coarse_solve " HALOCLINE_VERSION},
                          {"gauge", task.file.path},
                          {"tile", value_of("lattice.tile", s)},
                          {"reunitarise", value_of("lattice.reunitarise", s)},
                          {"m0", value_of("operator.m0", s)},
                          {"csw", value_of("operator.csw", s)},
                          {"boundary", value_of("operator.boundary", s)},
                          {"rhs", result.rhs},
                          {"seed", value_of("solver.seed", s)},
                          {"tolerance", value_of("solver.tolerance", s)},
                          {"relativeResidual", scientific(result.true_relative_residual)},
                          {"converged", result.converged ? "true" : "false"}},
                         path);
}

} // namespace

std::vector<std::string> solution_paths(const std::string& path, std::size_t count) {
    if (path.empty() || count == 1) return std::vector(count, path);
    const std::filesystem::path whole(path), folder = whole.parent_path();
    refuse_dash("--solution", path, false);
    std::error_code none;
    if (!whole.has_filename() || std::filesystem::is_directory(whole, none))
        throw input_error("--solution " + path +
                          ": can't be written: it is a folder; several solutions are numbered, so name a file: " +
                          (whole / "x.lime").string() + " becomes " + (whole / "x.00.lime").string() + " and so on");
    const std::size_t digits = std::max<std::size_t>(2, std::to_string(count - 1).size());
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < count; ++i) {
        std::string number = std::to_string(i);
        number.insert(0, digits - number.size(), '0');
        paths.push_back((folder / (whole.stem().string() + '.' + number + whole.extension().string())).string());
    }
    return paths;
}

bool write_solution(const program& p, const problem& task, const settings& s, const lattice::field<double>& x,
                    const run_result& result, const std::string& path) {
    if (path.empty()) return false;
    try {
        write(p.job(), task, s, x, result, path);
    } catch (const input_error& e) { // the same on every rank
        const std::string what = std::string("--solution: ") + e.what();
        if (s.rhs.size() > 1) p.print("warning: " + what); // the others may take long
        p.lose_output(what);
        return false;
    }
    p.print("wrote " + path + " (read back and verified): solution with relative residual " +
            scientific(result.true_relative_residual) + (result.converged ? "" : ", NOT converged"));
    return true;
}

} // namespace halocline::app
