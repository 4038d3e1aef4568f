use super::bytes::Strings;
use super::ints::Ints;
use super::*;
use basalt_types::span::Span;
use basalt_types::text::LengthUnit;
use proptest::prelude::*;

fn check_ints(values: &[i64]) -> usize {
    let mut encoded = Vec::new();
    ints::encode(values, &mut encoded);
    let mut input = encoded.as_slice();
    let ints = Ints::parse(&mut input, values.len()).unwrap();
    assert!(input.is_empty());
    let mut decoded = Vec::<i64>::new();
    ints.decode(&mut decoded).unwrap();
    assert_eq!(decoded, values);
    let mut narrow = Vec::<i16>::new();
    ints.decode(&mut narrow).unwrap();
    assert!(narrow.iter().zip(values).all(|(narrow, value)| *narrow == *value as i16));
    for (i, value) in values.iter().enumerate().step_by(1 + values.len() / 500) {
        assert_eq!(ints.get(i), *value, "value {i} of {}", values.len());
    }
    check_spans(&ints, values);
    encoded.len()
}

/// Tests of spans around some of the values, where the form can do them.
fn check_spans(ints: &Ints<'_>, values: &[i64]) {
    let ends = || values.iter().step_by(1 + values.len() / 3).flat_map(|value| [value.saturating_sub(1), *value]);
    let pairs = ends().flat_map(|low| ends().map(move |high| (i128::from(low), i128::from(high))));
    let open = ends().flat_map(|end| [(i128::MIN, i128::from(end)), (i128::from(end), i128::MAX)]);
    for (low, high) in pairs.chain(open) {
        for inside in [true, false] {
            let span = Span { low, high, inside };
            let mut mask: Vec<u8> = (0..values.len()).map(|row| u8::from(row % 7 != 0)).collect();
            if ints.test(span, &mut mask).unwrap() {
                let expected =
                    values.iter().enumerate().map(|(row, value)| row % 7 != 0 && span.contains((*value).into()));
                assert!(expected.eq(mask.iter().map(|mask| *mask == 1)), "{span:?}");
            }
        }
    }
}

#[test]
fn every_width_and_length_round_trips() {
    for width in 0..=64u32 {
        for count in [0, 1, 7, 127, 128, 129, 1023, 1024, 1025, 4000, 8192] {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let value = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i << 7) & mask;
            check_ints(&(0..count).map(|i| value(i) as i64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn each_shape_takes_the_form_that_suits_it() {
    let sizes = [
        ("constant", check_ints(&[77; 8192]), 20),
        ("runs", check_ints(&(0..8192).map(|i| i / 500 * 1_000_003).collect::<Vec<_>>()), 130),
        ("ascending", check_ints(&(0..8192).map(|i| i * 4 + (i * i) % 3).collect::<Vec<_>>()), 3300),
        ("scaled", check_ints(&(0..8192).map(|i| (i * 7919) % 50 * 100).collect::<Vec<_>>()), 6200),
        ("narrow", check_ints(&(0..8192).map(|i| (1 << 40) + (i * 7919) % 16).collect::<Vec<_>>()), 4120),
        ("extremes", check_ints(&[i64::MIN, i64::MAX, 0, -1].repeat(2000)), 64_020),
    ];
    for (shape, bytes, bytes_max) in sizes {
        assert!(bytes <= bytes_max, "{shape}: {bytes} bytes, at most {bytes_max} expected");
    }
}

fn check_strings(strings: &Vec<&[u8]>) {
    let mut plain = Vec::new();
    bytes::encode(strings, &mut plain);
    let compressor = ::fsst::Compressor::train(strings);
    let (mut codes, mut ends, mut table, mut compressed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    compressor.compress_bulk_into::<4>(strings, &mut codes, &mut ends);
    fsst::put_symbols(&compressor, &mut table);
    let decoded_bytes = strings.iter().map(|string| string.len()).sum();
    bytes::encode_compressed(decoded_bytes, &codes, &ends, &mut compressed);
    let symbols = fsst::Symbols::parse(&mut table.as_slice()).unwrap();
    for (encoded, symbols) in [(plain, None), (compressed, Some(symbols.as_ref()))] {
        let parsed = Strings::parse(&mut encoded.as_slice(), strings.len(), symbols).unwrap();
        let mut views = Vec::new();
        let buffer = parsed.decode(0, &mut views).unwrap();
        let array = arrow_array::BinaryViewArray::try_new(views.into(), vec![buffer.into()], None).unwrap();
        assert!(array.iter().map(Option::unwrap).eq(strings.iter().copied()));
        for (i, string) in strings.iter().enumerate() {
            assert_eq!(parsed.get(i).unwrap().as_ref(), *string);
        }
        check_lengths(&parsed, strings);
    }
}

/// Of all strings, and of some that come again and again.
fn check_lengths(parsed: &Strings<'_>, strings: &[&[u8]]) {
    for unit in [LengthUnit::Bytes, LengthUnit::Chars] {
        let all: Vec<i32> = strings.iter().map(|string| unit.count(string) as i32).collect();
        let count = strings.len() as u32;
        let some = |step: u32, times: usize| (0..count).step_by(step as usize).flat_map(move |at| [at].repeat(times));
        for places in [None, Some(some(1, 3).collect::<Vec<u32>>()), Some(some(count / 5 + 1, 2).collect())] {
            let mut lengths = vec![7];
            assert!(parsed.lengths(unit, places.as_deref(), &mut lengths).unwrap());
            let expected = places.map_or(all.clone(), |places| places.iter().map(|at| all[*at as usize]).collect());
            assert_eq!(lengths[1..], expected, "{unit:?}");
        }
    }
}

proptest! {
    #[test]
    fn integers_round_trip(values in prop::collection::vec(any::<i64>(), 0..2500), shift in 0u32..64, sort: bool) {
        let mut values: Vec<i64> = values.into_iter().map(|value| value >> shift).collect();
        if sort {
            values.sort();
        }
        check_ints(&values);
    }

    #[test]
    fn strings_round_trip(strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..400)) {
        check_strings(&strings.iter().map(|string| string.as_slice()).collect());
    }

    #[test]
    fn damaged_values_end_in_an_error_or_in_some_values(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        count in 1usize..1500,
    ) {
        if let Ok(ints) = Ints::parse(&mut bytes.as_slice(), count) {
            (0..count).for_each(|i| _ = ints.get(i));
            let _ = ints.decode(&mut Vec::<i32>::new());
            let _ = ints.test(Span { low: -5, high: 1 << 40, inside: true }, &mut vec![1; count]);
        }
        let symbols = fsst::Symbols::parse(&mut bytes.as_slice());
        for symbols in [None, symbols.as_deref().ok()] {
            if let Ok(strings) = Strings::parse(&mut bytes.as_slice(), count, symbols) {
                (0..count).for_each(|i| drop(strings.get(i)));
                drop(strings.decode(0, &mut Vec::new()));
                let _ = strings.lengths(LengthUnit::Chars, None, &mut Vec::new());
                let _ = strings.lengths(LengthUnit::Bytes, Some(&[0]), &mut Vec::new());
            }
        }
    }
}

/// Encodes strings in blocks, and reads them in each way.
fn check_blocks(strings: &[&[u8]]) -> usize {
    let mut encoded = Vec::new();
    bytes::encode_blocks(strings, &mut blocks::Encoder::new().unwrap(), &mut encoded).unwrap();
    let parsed = Strings::parse_blocks(&mut encoded.as_slice(), strings.len()).unwrap();
    for (at, string) in strings.iter().enumerate().step_by(1 + strings.len() / 200) {
        assert_eq!(&*parsed.get(at).unwrap(), *string);
    }
    for step in [1, 3, 100] {
        let places: Vec<u32> = (0..strings.len() as u32).step_by(step).collect();
        let mut expected = places.iter().map(|place| strings[*place as usize]);
        let check = |string: &[u8]| {
            assert_eq!(Some(string), expected.next());
            Ok(())
        };
        parsed.visit(&places, check).unwrap();
        assert_eq!(expected.next(), None);
    }
    let mut views = Vec::new();
    let buffer = parsed.decode(0, &mut views).unwrap();
    let array = arrow_array::BinaryViewArray::try_new(views.into(), vec![buffer.into()], None).unwrap();
    assert!(array.iter().eq(strings.iter().map(|string| Some(*string))));
    encoded.len()
}

#[test]
fn strings_in_blocks_of_zstd_come_back() {
    let noise = |i: u64| (0..i % 300).map(|k| (i * k).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()[7]).collect();
    let noise: Vec<Vec<u8>> = (0..4000).map(noise).collect();
    let words: Vec<String> = (0..4000).map(|i| "words that come again ".repeat(i * i % 17)).collect();
    let long: Vec<String> = [5, 16_384, 16_385, 0, 1, 400_000, 16_383, 1].map(|bytes| "a".repeat(bytes)).into();
    let plain: usize = words.iter().map(String::len).sum();
    let compressed = check_blocks(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    assert!(compressed * 20 < plain, "{compressed} of {plain} bytes");
    // What cannot be compressed is stored as it is.
    let plain: usize = noise.iter().map(Vec::len).sum();
    let stored = check_blocks(&noise.iter().map(Vec::as_slice).collect::<Vec<_>>());
    assert!(stored < plain + plain / 50, "{stored} of {plain} bytes");
    check_blocks(&long.iter().map(|string| string.as_bytes()).collect::<Vec<_>>());
    check_blocks(&[]);
    check_blocks(&[b"", b"", b""]);
    check_blocks(&[b"", b"x", b""]);
}

#[test]
fn damaged_ends_of_blocks_are_refused_and_spoil_no_other_block() {
    const DATA: &[u8] = b"first....+second...+third....+";
    let blocks_of = |ends: [i64; 3], stored: [i64; 3]| {
        let mut encoded = vec![3];
        linear::encode_any(&ends, &mut encoded);
        linear::encode_any(&stored, &mut encoded);
        encoded.extend_from_slice(DATA);
        encoded
    };
    let sound = [10, 20, 30];
    for ends in [sound, [10, 5, 30], [20, 10, 30], [10, 20, 5], [30, 20, 10], [10, -5, 30], [-1, 20, 30]] {
        for stored in [sound, [10, 12, 30], [10, 5, 30], [10, -1, 30], [10, 20, 31]] {
            let encoded = blocks_of(ends, stored);
            let parsed = blocks::Blocks::parse(&mut encoded.as_slice()).unwrap();
            let mut open = blocks::OpenBlock::new(&parsed);
            for start in (0..31).chain((0..31).rev()) {
                let found = open.get(start..start + 2);
                if ends == sound && stored == sound && start % 10 < 9 && start < 29 {
                    assert_eq!(found.unwrap(), &DATA[start..start + 2]);
                } else if start % 10 == 9 || start > 28 {
                    assert!(found.is_err() || ends != sound, "{start} of {ends:?}, {stored:?}");
                }
            }
        }
    }
    // The first block is read again as it was.
    let encoded = blocks_of(sound, [10, 12, 30]);
    let parsed = blocks::Blocks::parse(&mut encoded.as_slice()).unwrap();
    let mut open = blocks::OpenBlock::new(&parsed);
    assert_eq!(open.get(0..5).unwrap(), b"first");
    assert!(open.get(10..16).is_err());
    assert_eq!(open.get(0..5).unwrap(), b"first");
}

#[test]
fn damaged_blocks_are_refused_and_never_panic() {
    let words: Vec<String> = (0..600).map(|i| format!("row {i} with some words that come again and again")).collect();
    let strings: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let mut encoded = Vec::new();
    bytes::encode_blocks(&strings, &mut blocks::Encoder::new().unwrap(), &mut encoded).unwrap();
    let read = |encoded: &[u8]| {
        let parsed = Strings::parse_blocks(&mut &*encoded, strings.len())?;
        (0..strings.len()).step_by(37).try_for_each(|at| parsed.get(at).map(drop))?;
        parsed.decode(0, &mut Vec::new())
    };
    assert!(read(&encoded).is_ok());
    for at in 0..encoded.len() {
        assert!(read(&encoded[..at]).is_err(), "cut at {at}");
        let mut flipped = encoded.clone();
        flipped[at] ^= 1 << (at % 8);
        // Some damage gives other strings: the checksum of the page is what tells.
        let _ = read(&flipped);
    }
}
