//! Floats as integers of the same order.

/// An integer of the same order, in which all NaNs are one and the greatest. A zero with a sign is the lesser one.
#[inline(always)]
pub fn word(value: f64) -> i64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() } as i64;
    // Of negative ones the greater bits are the lesser value.
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The same, in which both zeros are one: how SQL compares.
#[inline(always)]
pub fn ordered(value: f64) -> i64 {
    word(value + 0.0)
}

/// The float that [`word`] makes an integer of.
pub fn of_word(word: i64) -> f64 {
    f64::from_bits((word ^ ((word >> 63) as u64 >> 1) as i64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    #[test]
    fn integers_have_the_order_of_floats() {
        let values = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            5e-324,
            1.5,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        // As SQL orders them.
        let order = |a: f64, b: f64| -> Ordering { a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())) };
        for a in values {
            for b in values {
                assert_eq!(ordered(a).cmp(&ordered(b)), order(a, b), "{a} {b}");
                let of_words = word(a).cmp(&word(b));
                assert!(of_words == order(a, b) || (a == 0.0 && b == 0.0), "{a} {b}");
            }
            assert_eq!(of_word(word(a)).to_bits(), a.to_bits(), "{a}");
        }
        let negative_nan = f64::from_bits(u64::MAX);
        assert!(negative_nan.is_nan());
        assert_eq!(ordered(negative_nan), ordered(f64::NAN));
    }
}
