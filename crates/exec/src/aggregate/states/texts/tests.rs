use super::*;
use std::collections::BTreeMap;

/// Texts of which many have the same first bytes.
fn texts(rows: usize, seed: u64) -> Vec<Option<Vec<u8>>> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    (0..rows)
        .map(|_| {
            let common = [&b"https://"[..], b"http", b"", b"\0\0"][next() % 4];
            let length = next() % 4;
            let rest: Vec<u8> = (0..length).map(|_| [0, b'a', b'b', 255][next() % 4]).collect();
            (next() % 7 != 0).then(|| [common, &rest].concat())
        })
        .collect()
}

fn flat(texts: &[Option<Vec<u8>>]) -> Vector {
    Vector::Flat(Arc::new(texts.iter().map(Option::as_deref).collect::<BinaryViewArray>()))
}

fn coded(texts: &[Option<Vec<u8>>]) -> Vector {
    let mut entries: Vec<&[u8]> = texts.iter().flatten().map(Vec::as_slice).collect();
    entries.dedup();
    let code =
        |text: &Option<Vec<u8>>| text.as_ref().map_or(0, |text| entries.iter().position(|e| e == text).unwrap() as u32);
    let nulls = texts.iter().map(Option::is_some).collect();
    let codes = texts.iter().map(code).collect();
    Vector::Codes(Codes {
        codes,
        nulls: Some(nulls),
        dictionary: Arc::new(entries.iter().copied().map(Some).collect()),
    })
}

#[test]
fn extremes_are_those_of_a_map() {
    for greatest in [false, true] {
        let mut all = TextExtreme::new(greatest);
        let mut wanted: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for part in 0..6 {
            let texts = texts(100, part * 17 + 3);
            let groups: Vec<u32> = (0..100).map(|row| (row * 7 + part as u32) % 5).collect();
            for (text, group) in texts.iter().zip(&groups).filter(|(_, group)| **group != 0) {
                let Some(text) = text else { continue };
                let known = wanted.entry(*group).or_insert_with(|| text.clone());
                let better = if greatest { text > known } else { text < known };
                if better {
                    known.clone_from(text);
                }
            }
            let values = if part % 2 == 0 { flat(&texts) } else { coded(&texts) };
            // Every other one by way of another worker.
            if part % 3 == 0 {
                let mut other = TextExtreme::new(greatest);
                other.add(&values, Groups::Each(&groups), 5).unwrap();
                all.merge(&mut other, &[4, 3, 2, 1], 1, 5).unwrap();
            } else {
                let swapped: Vec<u32> = groups.iter().map(|group| if *group == 0 { 0 } else { 5 - group }).collect();
                all.add(&values, Groups::Each(&swapped), 5).unwrap();
            }
        }
        let found = all.values(1..6);
        let found = found.as_binary_view();
        for (at, group) in (0..).zip([4, 3, 2, 1]) {
            assert_eq!(Some(found.value(at)), wanted.get(&group).map(Vec::as_slice), "{greatest} {group}");
        }
        // Nobody had the last one.
        assert!(found.is_null(4));
        assert!(all.bytes() > 0);
    }
}
