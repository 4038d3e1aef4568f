use super::*;

#[test]
fn present_keys_pass_and_about_one_absent_key_in_a_hundred() {
    let hash = |i: u64| key_hash(&i.to_be_bytes());
    let hashes: Vec<u64> = (0..20_000).map(hash).collect();
    let filter = build(&hashes);
    let contains = |hash: u64| {
        let block = block_of(hash, (filter.len() / BLOCK_BYTES) as u32) as usize;
        block_contains(&filter[block * BLOCK_BYTES..][..BLOCK_BYTES], hash)
    };
    assert!(hashes.iter().all(|hash| contains(*hash)));
    let passed = (20_000..120_000).filter(|i| contains(hash(*i))).count();
    assert!(passed < 2_000, "{passed} of 100,000 absent keys passed");
}
