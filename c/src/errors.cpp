// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <halocline/base/version.h>
#include <halocline/comm/bad_input.hpp>
#include <halocline/comm/out_of_memory.hpp>
#include <halocline/comm/slab_full.hpp>

namespace halocline::c {
namespace {

struct last_error {
    std::string text = "no error";
    int culprit = -1;
    bool is_unshared = false; ///< bad input that the other ranks don't know
};
thread_local last_error last;

} // namespace

halocline_status failed(halocline_status why, std::string_view text, int culprit) noexcept {
    last.culprit = culprit;
    last.is_unshared = false;
    try {
        last.text = text;
    } catch (...) { // no memory for it
        last.text.clear();
    }
    return why;
}

halocline_status caught() noexcept {
    try {
        throw;
    } catch (const comm::rank_failure& e) {
        return failed(code_of(e.why()), e.what(), e.culprit());
    } catch (const comm::unshared_input_error& e) {
        failed(HALOCLINE_INPUT_ERROR, e.what());
        last.is_unshared = true;
        return HALOCLINE_INPUT_ERROR;
    } catch (const input_error& e) {
        return failed(HALOCLINE_INPUT_ERROR, e.what());
    } catch (const job_error& e) {
        return failed(HALOCLINE_JOB_ERROR, e.what());
    } catch (const comm::slab_full& e) {
        return failed(HALOCLINE_SLAB_FULL, e.what());
    } catch (const comm::out_of_memory& e) { // possibly of another rank
        return failed(HALOCLINE_NO_MEMORY, e.what());
    } catch (const std::bad_alloc&) {
        return failed(HALOCLINE_NO_MEMORY, "out of memory");
    } catch (const std::exception& e) {
        return failed(HALOCLINE_OTHER_ERROR, e.what());
    } catch (...) {
        return failed(HALOCLINE_OTHER_ERROR, "an exception of unknown type");
    }
}

bool is_unshared(std::string_view text) noexcept { return last.is_unshared && text == last.text; }

} // namespace halocline::c

const char* halocline_version(void) { return HALOCLINE_VERSION; }
const char* halocline_error(void) { return halocline::c::last.text.c_str(); }
int halocline_error_rank(void) { return halocline::c::last.culprit; }
