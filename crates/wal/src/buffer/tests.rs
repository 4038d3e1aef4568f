use super::*;

fn stream(capacity: u64) -> Stream {
    Stream { epoch: Epoch(1), salt: 5, origin: 2 * PAGE_BYTES, capacity }
}

fn image() -> Image {
    Image { start: 2 * PAGE_BYTES, ..Image::default() }
}

#[test]
fn blocks_end_with_their_file_and_at_their_greatest_size() {
    for (capacity, ends) in [(3 * PAGE_BYTES, 3 * PAGE_BYTES), (64 << 20, BLOCK_BYTES_MAX as u64)] {
        let (stream, mut image) = (stream(capacity), image());
        let payload = vec![7; 5 << 20];
        let lsn = image.append(&stream, &[&payload], payload.len() as u32, crc32c::crc32c(&payload));
        assert_eq!(lsn, image.start + BLOCK_HEADER_BYTES as u64);
        for (i, block) in image.blocks.iter().enumerate() {
            assert_eq!(block.at as u64, i as u64 * ends);
        }
        assert_eq!(image.blocks[1].first_record, None);
    }
}

#[test]
fn end_bound_is_never_exceeded() {
    for capacity in [3 * PAGE_BYTES, 5 * PAGE_BYTES, 3 << 20] {
        for payload_bytes in [0, 1, 4040, 4048, 4049, 12_000, 12_300, 100_000, 1 << 20, 3 << 20] {
            let (stream, mut image) = (stream(capacity), image());
            for _ in 0..3 {
                let bound = stream.end_bound(image.end(), payload_bytes);
                image.append(&stream, &[&vec![0; payload_bytes]], payload_bytes as u32, 0);
                let end = align_up(image.end());
                assert!(end <= bound, "{payload_bytes} bytes in files of {capacity}: {end} > {bound}");
            }
        }
    }
}

#[test]
fn sealed_image_is_whole_pages() {
    let (stream, mut image) = (stream(1 << 20), image());
    image.append(&stream, &[b"a", b"bc"], 3, crc32c::crc32c(b"abc"));
    image.seal();
    assert_eq!(image.bytes.len() as u64, PAGE_BYTES);
    assert_eq!(image.write_headers(&stream, 0, image.bytes.len(), 0), 1);
    assert_eq!(&image.bytes[BLOCK_HEADER_BYTES + RECORD_HEADER_BYTES..][..4], b"abc\0");
}
