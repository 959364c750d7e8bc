// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/field_check.hpp>

namespace halocline::halo {
namespace {

std::string site_of(std::size_t bytes, comm::element_type element) {
    return std::to_string(bytes) + " bytes per site" + (element.bytes > 0 ? " (" + comm::to_string(element) + ")" : "");
}

} // namespace

void field_check::refuse(std::size_t fields, const source_field* unfit) noexcept {
    refused_ = given_fields{.count = fields};
    if (!unfit || !unfit->values) return;
    refused_->site_bytes = unfit->shape.bytes();
    refused_->element = unfit->element;
    if (!unfit->order) return;
    refused_->extents = unfit->order->extents();
    refused_->of_one_parity = !has_sites(*unfit->order);
}

void field_check::refuse_bytes(std::size_t fields, bool there) noexcept {
    refused_.reset();
    byte_fields_ = fields;
    bytes_there_ = there;
}

std::string field_check::describe_refused() const {
    const auto counted = [](std::size_t n) { return std::to_string(n) + (n == 1 ? " field" : " fields"); };
    if (!refused_ && !bytes_there_)
        return "start_bytes() was given no address; it sends " + std::to_string(site_bytes_) +
               " bytes per site of a box of " + lattice::to_string(extents_);
    if (!refused_ && ordered_)
        return "start_bytes() sends fields in lexicographic order; the plan was made for another order";
    if (!refused_) return "start_bytes() was given " + counted(byte_fields_) + "; it sends " + counted(fields_);
    std::string given = counted(refused_->count);
    if (refused_->site_bytes > 0)
        given += ", one of " +
                 site_of(refused_->site_bytes, element_.bytes > 0 ? refused_->element : comm::element_type{}) +
                 " on a box of " + lattice::to_string(refused_->extents) +
                 (refused_->of_one_parity ? ", in an order of one parity that is not plan_options::order" : "");
    else if (refused_->count == fields_)
        given += ", one without storage";
    return "start() was given " + given + "; it sends " + std::to_string(fields_) + " of " +
           site_of(site_bytes_, element_) + " on a box of " + lattice::to_string(extents_);
}

} // namespace halocline::halo
