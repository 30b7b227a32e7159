// The limit on conversions between int and str.
#pragma once

namespace oxy::cpy {

// sys.get_int_max_str_digits(): conversions of ints with more digits are errors. 0: no limit.
int most_digits();

}  // namespace oxy::cpy
