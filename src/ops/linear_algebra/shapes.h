// Shape rules of decompositions and solvers. Their matrices lie column by column, as LAPACK writes them.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas inverse(const ShapeContext& context);          // linalg_inv_ex, linalg_cholesky_ex: result, info
Metas determinant(const ShapeContext& context);      // result, LU, pivots
Metas log_determinant(const ShapeContext& context);  // sign, logarithm, LU, pivots
Metas solution(const ShapeContext& context);         // _linalg_solve_ex: result, LU, pivots, info
Metas qr(const ShapeContext& context);
Metas singular_values(const ShapeContext& context);        // _linalg_svd: U, S, Vh
Metas symmetric_eigenvalues(const ShapeContext& context);  // _linalg_eigh: values, vectors
Metas eigenvalues(const ShapeContext& context);            // _linalg_eigvals
Metas eigenvectors(const ShapeContext& context);           // linalg_eig: values, vectors
Metas lu_factors(const ShapeContext& context);             // linalg_lu_factor_ex: LU, pivots, info
Metas lu(const ShapeContext& context);                     // P, L, U
Metas lu_solution(const ShapeContext& context);            // linalg_lu_solve(LU, pivots, B)
Metas ldl_factors(const ShapeContext& context);            // LD, pivots, info
Metas triangular_solution(const ShapeContext& context);    // linalg_solve_triangular(A, B)
Metas triangular_solution_and_matrix(
    const ShapeContext& context);                  // triangular_solve(B, A): also a copy of A
Metas least_squares(const ShapeContext& context);  // linalg_lstsq: solution, residuals, rank, singular values
Metas cholesky_solution(const ShapeContext& context);        // cholesky_solve(B, L)
Metas inverse_of_factor(const ShapeContext& context);        // cholesky_inverse
Metas product_of_reflectors(const ShapeContext& context);    // linalg_householder_product
Metas product_with_reflectors(const ShapeContext& context);  // ormqr
Metas reflectors(const ShapeContext& context);               // geqrf: a, tau
Metas pseudo_inverse(const ShapeContext& context);
Metas unpacked_lu(const ShapeContext& context);  // lu_unpack: P, L, U
Metas no_results(const ShapeContext& context);
Metas block_diagonal(const ShapeContext& context);  // of a list
Metas matrix_exponential(const ShapeContext& context);

}  // namespace oxy::ops::shapes
