//! Roots, powers, exponentials and logarithms.
