// How long the text of an int may be.
#pragma once

namespace oxy::cpy {

// What sys.get_int_max_str_digits() returns: from so many digits on, conversions between int and str are
// errors. 0: no limit.
int most_digits();

}  // namespace oxy::cpy
