use super::*;
use proptest::prelude::*;

/// Bytes of the values in their smallest form, which gives back every bit, and the form.
fn check<T: Bits + PartialEq + std::fmt::Debug>(values: &[T]) -> (usize, u8) {
    let stored: Vec<i64> = values.iter().map(|value| signed(*value)).collect();
    let mut encoded = Vec::new();
    Encoder::new(T::BITS, &stored).encode(&stored, &mut encoded);
    let mut plain = Vec::new();
    ints::encode(&stored, &mut plain);
    assert!(encoded.len() <= plain.len(), "{} bytes, {} as integers", encoded.len(), plain.len());
    let mut input = encoded.as_slice();
    let floats = Floats::parse(&mut input, values.len(), T::BITS).unwrap();
    assert!(input.is_empty());
    let mut decoded = vec![T::default(); 3];
    floats.decode(&mut decoded).unwrap();
    assert_eq!(&decoded[3..], values);
    for (at, value) in values.iter().enumerate() {
        assert_eq!(floats.get::<T>(at), *value, "value {at} of {}", values.len());
    }
    for step in [1, 2, 7, 100] {
        let rows: Vec<u32> = (0..values.len() as u32).step_by(step).collect();
        let mut picked = Vec::new();
        floats.pick::<T>(&rows, values.len(), &mut picked).unwrap();
        assert!(picked.iter().eq(values.iter().step_by(step)), "every {step}th value");
    }
    (encoded.len(), encoded[0])
}

/// As chunks hold it.
fn signed<T: Bits>(value: T) -> i64 {
    if T::BITS == 32 { i64::from(value.to_u64() as i32) } else { value.to_u64() as i64 }
}

fn doubles(values: impl Iterator<Item = f64>) -> Vec<i64> {
    values.map(|value| value.to_bits() as i64).collect()
}

fn singles(values: impl Iterator<Item = f32>) -> Vec<i32> {
    values.map(|value| value.to_bits() as i32).collect()
}

fn scattered(row: u64) -> u64 {
    let bits = (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ bits >> 32
}

fn fraction(row: u64) -> f64 {
    (scattered(row) >> 11) as f64 / (1u64 << 53) as f64
}

/// Values that decimals of any kind are not, bit by bit.
const ODD: [u64; 12] = [
    0x8000_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0xffff_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff,
    0x0000_0000_0000_0001,
    0x000f_ffff_ffff_ffff,
    0x8000_0000_0000_0001,
    0x4340_0000_0000_0001,
    0xc330_0000_0000_0001,
];

#[test]
fn each_distribution_takes_the_form_that_suits_it() {
    let n = || 0..8192u64;
    let cents = doubles(n().map(|row| (scattered(row) % 100_000) as f64 / 100.0));
    let sensor = doubles(n().map(|row| ((scattered(row) % 4000) as f64 - 2000.0) / 1000.0));
    let millis = doubles(n().map(|row| 1.7e12 + (row * 250 + scattered(row) % 9) as f64));
    let unordered = doubles(n().map(|row| 1.7e12 + (scattered(row) % 10_000_000) as f64));
    let seconds = doubles(n().map(|row| (1_700_000_000_000_000 + row * 250) as f64 / 1e6));
    let with_odd = cents.iter().zip(0..).map(|(value, row)| match row % 50 {
        3 => ODD[row / 50 % ODD.len()] as i64,
        _ => *value,
    });
    let forms = [
        ("cents", check(&cents), ALP, 17.2),
        ("a sensor's", check(&sensor), ALP, 12.4),
        ("milliseconds in order", check(&millis), 1, 5.3),
        ("milliseconds", check(&unordered), 0, 24.1),
        ("microseconds as seconds", check(&seconds), 1, 1.3),
        ("cents among odd ones", check(&with_odd.collect::<Vec<_>>()), ALP, 19.5),
        ("mostly one", check(&doubles(n().map(|row| if row % 512 == 9 { fraction(row) } else { 0.25 }))), ALP, 0.4),
        ("one", check(&doubles(n().map(|_| 0.1))), 0, 0.1),
        ("real", check(&doubles(n().map(|row| fraction(row) + 0.1))), 0, 54.1),
        ("coordinates", check(&doubles(n().map(|row| fraction(row) * 360.0 - 180.0))), ALP_RD, 58.0),
        ("any bits", check(&doubles(n().map(|row| f64::from_bits(scattered(row))))), 0, 64.1),
        ("odd ones", check(&(0..8192).map(|row| ODD[row % ODD.len()] as i64).collect::<Vec<_>>()), 0, 64.1),
        ("singles of tenths", check(&singles(n().map(|row| (scattered(row) % 5000) as f32 / 10.0))), ALP, 13.2),
        ("real singles", check(&singles(n().map(|row| fraction(row) as f32))), 0, 27.1),
        ("coordinates in singles", check(&singles(n().map(|row| fraction(row) as f32 * 360.0 - 180.0))), ALP_RD, 27.5),
        ("whole singles", check(&singles(n().map(|row| (scattered(row) % 256) as f32))), ALP, 8.2),
    ];
    let bits = |bytes: usize| bytes as f64 * 8.0 / 8192.0;
    let unsuited: Vec<String> = forms
        .into_iter()
        .filter(|(_, (bytes, form), expected, bits_max)| form != expected || bits(*bytes) > *bits_max)
        .map(|(name, (bytes, form), ..)| format!("{name}: form {form}, {:.2} bits", bits(bytes)))
        .collect();
    assert!(unsuited.is_empty(), "{unsuited:#?}");
}

fn any_double() -> BoxedStrategy<u64> {
    let decimal = (any::<i32>(), 0i32..8).prop_map(|(digits, scale)| (f64::from(digits) / 10f64.powi(scale)).to_bits());
    prop_oneof![
        4 => decimal,
        1 => any::<f64>().prop_map(f64::to_bits),
        1 => any::<u64>(),
        1 => prop::sample::select(ODD.to_vec()),
        1 => (-1e6..1e6f64).prop_map(f64::to_bits),
        1 => any::<i64>().prop_map(|whole| (whole as f64).to_bits()),
    ]
    .boxed()
}

fn any_single() -> BoxedStrategy<u32> {
    let decimal =
        (-99_999i32..99_999, 0i32..5).prop_map(|(digits, scale)| (digits as f32 / 10f32.powi(scale)).to_bits());
    prop_oneof![4 => decimal, 1 => any::<u32>(), 1 => (-1e3..1e3f32).prop_map(f32::to_bits)].boxed()
}

/// Few values of a kind that repeat, or many of them, as many as a page has and fewer.
fn repeated<T: Clone + std::fmt::Debug>(value: BoxedStrategy<T>) -> impl Strategy<Value = Vec<T>> {
    (prop::collection::vec(value, 1..400), 1usize..9000, 1usize..50)
        .prop_map(|(some, count, run)| (0..count).map(|at| some[at / run % some.len()].clone()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn doubles_round_trip(values in repeated(any_double())) {
        check(&values.into_iter().map(|bits| bits as i64).collect::<Vec<_>>());
    }

    #[test]
    fn singles_round_trip(values in repeated(any_single())) {
        check(&values.into_iter().map(|bits| bits as i32).collect::<Vec<_>>());
    }

    #[test]
    fn doubles_of_one_scale_round_trip(
        digits in prop::collection::vec(-99_999_999i64..99_999_999, 1..3000),
        scale in 0i32..10,
        odd in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 0..40),
    ) {
        let mut values = doubles(digits.iter().map(|digits| *digits as f64 / 10f64.powi(scale)));
        let count = values.len();
        odd.into_iter().for_each(|(at, bits)| values[at.index(count)] = bits as i64);
        check(&values);
    }

    #[test]
    fn damaged_floats_end_in_an_error_or_in_some_values(
        values in repeated(any_double()),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..6),
        cut in any::<prop::sample::Index>(),
        form in 0u8..6,
    ) {
        let values: Vec<i64> = values.into_iter().map(|bits| bits as i64).collect();
        let mut encoded = Vec::new();
        Encoder::new(64, &values).encode(&values, &mut encoded);
        let whole = encoded.clone();
        // The head is what lengths and forms follow from.
        for (at, bit) in flips {
            let at = at.index(encoded.len().min(60));
            encoded[at] ^= 1 << bit;
        }
        survive(&encoded, values.len());
        encoded[0] = form;
        survive(&encoded, values.len());
        let cut = cut.index(whole.len());
        prop_assert!(Floats::parse(&mut &whole[..cut], values.len(), 64).is_err());
        survive(&whole, values.len() + 1);
    }
}

fn survive(encoded: &[u8], count: usize) {
    for bits in [32, 64] {
        let Ok(floats) = Floats::parse(&mut &encoded[..], count, bits) else { continue };
        (0..count).step_by(1 + count / 100).for_each(|at| _ = (floats.get::<i64>(at), floats.get::<i32>(at)));
        let (mut decoded, mut narrow) = (Vec::<i64>::new(), Vec::<i32>::new());
        if floats.decode(&mut decoded).is_ok() {
            assert_eq!(decoded.len(), count);
        }
        let _ = floats.decode(&mut narrow);
        let _ = floats.pick::<i64>(&[0, count as u32 - 1], count, &mut decoded);
    }
}

#[test]
fn digits_that_doubles_cannot_hold_are_computed_alike_one_by_one_and_many_at_a_time() {
    for (base, factor) in [(i64::MAX - 5, 1u64), (i64::MIN, 3), (-1, 1 << 40), (1 << 53, 7), (0, u64::MAX)] {
        let packed: Vec<u64> = (0..2000).map(|at| at % 1024).collect();
        let mut encoded = vec![ALP, 3, 1, 0];
        encoded.extend_from_slice(&base.to_le_bytes());
        basalt_types::varint::put(&mut encoded, factor);
        encoded.push(10);
        super::super::bits::pack(&packed, 10, &mut encoded);
        encoded.push(0);
        let floats = Floats::parse(&mut encoded.as_slice(), packed.len(), 64).unwrap();
        let mut decoded = Vec::<i64>::new();
        floats.decode(&mut decoded).unwrap();
        assert!(decoded.iter().enumerate().all(|(at, value)| floats.get::<i64>(at) == *value), "{base} {factor}");
    }
}
