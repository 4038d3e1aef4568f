use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Separators with long shared prefixes, so that heads collide and prefixes shrink.
fn separator(rng: &mut StdRng) -> Box<[u8]> {
    let mut key = vec![b'p'; rng.random_range(0..9)];
    key.extend((0..rng.random_range(1..4)).map(|_| rng.random_range(0..8u8)));
    key.into()
}

#[test]
fn the_page_of_the_greatest_separator_not_above_the_key_is_found() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let mut index = Index::new(0);
        let mut model = BTreeMap::from([(Box::<[u8]>::default(), 0)]);
        for page in 1..4000 {
            let key = separator(&mut rng);
            if rng.random_bool(0.7) && !model.contains_key(&key) {
                index.insert(key.clone(), page);
                model.insert(key, page);
            } else if model.len() > 1 {
                // The least page is never removed here, so that a left neighbour always takes over.
                if let Some((key, _)) = model.range(key..).next().filter(|(key, _)| !key.is_empty()) {
                    let key = key.clone();
                    let removed = model.remove(&key).unwrap();
                    assert_eq!(index.find(&key), removed);
                    index.remove(&key);
                    // Where the node's first child went, its right neighbour took over instead.
                    let heir = index.find(&key);
                    if heir != *model.range(..=key.clone()).next_back().unwrap().1 {
                        let (right, page) = model.range(key.clone()..).next().map(|(k, p)| (k.clone(), *p)).unwrap();
                        assert_eq!(heir, page);
                        model.remove(&right);
                        model.insert(key, page);
                    }
                }
            }
            let probe = separator(&mut rng);
            assert_eq!(index.find(&probe), *model.range(..=probe).next_back().unwrap().1);
        }
    }
}

#[test]
fn a_tree_shrinks_back_to_one_page() {
    let mut index = Index::new(0);
    let key = |i: u32| Box::<[u8]>::from(i.to_be_bytes());
    for page in 1..50_000 {
        index.insert(key(page), page);
    }
    for page in 1..50_000 {
        assert_eq!(index.find(&key(page)), page);
    }
    for page in 0..49_999 {
        index.remove(&key(page));
    }
    assert_eq!(index.find(&key(7)), 49_999);
    assert_eq!((index.nodes.len(), index.separator_bytes), (1, 0));
}
