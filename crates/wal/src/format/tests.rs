use super::*;

fn header() -> FileHeader {
    FileHeader { sequence: 7, first: 3 * PAGE_BYTES, file_bytes: 16 * PAGE_BYTES, salt: 99, epoch: Epoch(4) }
}

#[test]
fn file_header_round_trips_and_every_flipped_bit_is_noticed() {
    let page = header().encode();
    assert_eq!(page.len() as u64, PAGE_BYTES);
    assert_eq!(FileHeader::decode(Path::new("f"), 7, &page).unwrap(), header());
    for bit in 0..FILE_HEADER_BYTES * 8 {
        let mut damaged = page.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(FileHeader::decode(Path::new("f"), 7, &damaged), Err(Error::Corrupt { .. })), "bit {bit}");
    }
}

#[test]
fn file_header_of_another_name_or_version_is_refused() {
    let mut page = header().encode();
    assert!(matches!(FileHeader::decode(Path::new("f"), 8, &page), Err(Error::Corrupt { offset: 16, .. })));
    page[8..12].copy_from_slice(&2u32.to_le_bytes());
    let crc = FileHeader::crc(&page);
    page[12..16].copy_from_slice(&crc.to_le_bytes());
    let error = FileHeader::decode(Path::new("f"), 7, &page).unwrap_err();
    assert_eq!(error.to_string(), "f has log format version 2; this program reads up to 1");
}

#[test]
fn block_header_is_believed_at_its_own_place_only() {
    let block = BlockHeader {
        lsn: 4 * PAGE_BYTES,
        durable: PAGE_BYTES,
        epoch: Epoch(4),
        content_bytes: 100,
        first_record: 0,
        content_crc: 5,
    };
    let bytes = block.encode(99);
    assert_eq!(BlockHeader::decode(&bytes, &header(), block.lsn), Ok(block));
    assert!(BlockHeader::decode(&bytes, &header(), 5 * PAGE_BYTES).is_err());
    assert!(BlockHeader::decode(&bytes, &FileHeader { epoch: Epoch(5), ..header() }, block.lsn).is_err());
    assert!(BlockHeader::decode(&bytes, &FileHeader { salt: 98, ..header() }, block.lsn).is_err());
    for bit in 0..BLOCK_HEADER_BYTES * 8 {
        let mut damaged = bytes;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(BlockHeader::decode(&damaged, &header(), block.lsn).is_err(), "bit {bit}");
    }
}

#[test]
fn names_round_trip_and_strangers_are_ignored() {
    assert_eq!(parse_log_name(&log_name(0xabc)), Some(0xabc));
    assert_eq!(parse_spare_name(&spare_name(3)), Some(3));
    for stranger in ["", "x.log", "00000000000000ABC.log", "+000000000000abc.log", "0000000000000abc.spare"] {
        assert_eq!(parse_log_name(stranger), None, "{stranger}");
    }
}
