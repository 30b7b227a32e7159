// fmt, compiled once (OxyfuelDependencies.cmake says why). Its headers declare these templates `extern` and
// leave them to the library.
#include <fmt/format-inl.h>

template auto fmt::detail::thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl<char>(locale_ref) -> char;
