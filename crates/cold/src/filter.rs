//! A blocked Bloom filter: says for certain that a key is not in a file.
//!
//! The split-block layout (Putze, Sanders, Singler 2007, as Parquet specifies it): a block is eight 32-bit
//! words, one bit set in each, so a lookup touches 32 bytes. At ten bits a key about one absent key in a
//! hundred passes.

/// The hash by which filters, key indexes and the locator know a key: xxh3, 64 bits.
pub fn key_hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// The hash by which filters of columns know an integer: MurmurHash3's finalizer.
#[inline]
pub(crate) fn int_hash(value: i64) -> u64 {
    let mut bits = value as u64;
    bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ bits >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}

pub(crate) const BLOCK_BYTES: usize = 32;
const BITS_PER_KEY: u64 = 10;
const SALT: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// Number of blocks for so many keys.
pub(crate) fn block_count(keys: u64) -> u32 {
    (keys * BITS_PER_KEY).div_ceil(BLOCK_BYTES as u64 * 8).max(1) as u32
}

/// Which block of `blocks` a hash falls into.
pub(crate) fn block_of(hash: u64, blocks: u32) -> u32 {
    (((hash >> 32) * u64::from(blocks)) >> 32) as u32
}

fn masks(hash: u64) -> [u32; 8] {
    SALT.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

/// All blocks for these key hashes.
pub(crate) fn build(hashes: &[u64]) -> Vec<u8> {
    build_in(hashes, block_count(hashes.len() as u64))
}

/// The same in a given number of blocks.
pub(crate) fn build_in(hashes: &[u64], blocks: u32) -> Vec<u8> {
    let mut words = vec![[0u32; 8]; blocks as usize];
    for &hash in hashes {
        let block = &mut words[block_of(hash, blocks) as usize];
        for (word, mask) in block.iter_mut().zip(masks(hash)) {
            *word |= mask;
        }
    }
    words.into_iter().flatten().flat_map(u32::to_le_bytes).collect()
}

/// How many different hashes are in it, about: of a block's eight words each has lost a bit to every hash, perhaps one that
/// another had taken before.
pub(crate) fn distinct(filter: &[u8]) -> f64 {
    let (words, _) = filter.as_chunks::<8>();
    let set: u64 = words.iter().map(|word| u64::from(u64::from_le_bytes(*word).count_ones())).sum();
    let bits = filter.len() as f64 * 8.0;
    let unset = (bits - set as f64).max(1.0) / bits;
    let per_block = unset.ln() / (31.0f64 / 32.0).ln();
    per_block * filter.len() as f64 / BLOCK_BYTES as f64
}

/// Whether a block may hold the hash. A short block holds anything.
pub(crate) fn block_contains(block: &[u8], hash: u64) -> bool {
    let words = block.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")));
    words.zip(masks(hash)).all(|(word, mask)| word & mask != 0)
}

#[cfg(test)]
mod tests;
