//! Floats in the catalog's text: as the integer of their bits. JSON has no NaN and no infinities, and readers of decimal
//! fractions may miss the last bit. Earlier versions wrote finite floats as fractions, which are still read.

/// A module for `serde(with)`.
macro_rules! bits {
    ($module:ident, $float:ty, $bits:ty) => {
        pub mod $module {
            use serde::de::{Deserializer, Error, Visitor};
            use serde::ser::Serializer;
            use std::fmt;

            pub fn serialize<S: Serializer>(value: &$float, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_u64(u64::from(value.to_bits()))
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$float, D::Error> {
                struct Bits;

                impl Visitor<'_> for Bits {
                    type Value = $float;

                    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                        out.write_str("the bits of a float, or a fraction")
                    }

                    fn visit_u64<E: Error>(self, bits: u64) -> Result<$float, E> {
                        let bits = <$bits>::try_from(bits).map_err(|_| E::custom("more bits than a float has"))?;
                        Ok(<$float>::from_bits(bits))
                    }

                    fn visit_f64<E: Error>(self, value: f64) -> Result<$float, E> {
                        Ok(value as $float)
                    }
                }

                from.deserialize_any(Bits)
            }
        }
    };
}

bits!(single, f32, u32);
bits!(double, f64, u64);

#[cfg(test)]
mod tests {
    use crate::Datum;

    fn again(value: &Datum) -> Datum {
        serde_json::from_slice(&serde_json::to_vec(value).expect("text")).expect("a value")
    }

    #[test]
    fn every_float_comes_back() {
        for value in
            [0.0, -0.0, 0.1 + 0.2, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, 5e-324, f64::MAX]
        {
            assert_eq!(again(&Datum::F64(value)), Datum::F64(value), "{value}");
        }
        for value in [0.0, -0.0, 0.1, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, f32::MAX] {
            assert_eq!(again(&Datum::F32(value)), Datum::F32(value), "{value}");
        }
    }

    #[test]
    fn fractions_of_earlier_versions_are_read() {
        let read = |text| serde_json::from_str::<Datum>(text).ok();
        assert_eq!(read(r#"{"F64":1.5}"#), Some(Datum::F64(1.5)));
        assert_eq!(read(r#"{"F64":-2.0}"#), Some(Datum::F64(-2.0)));
        assert_eq!(read(r#"{"F32":0.1}"#), Some(Datum::F32(0.1)));
        assert_eq!(read(r#"{"F64":null}"#), None);
        assert_eq!(read(r#"{"F32":4294967296}"#), None);
    }
}
