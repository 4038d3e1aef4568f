use super::*;

#[test]
fn snapshots_are_read_and_printed() {
    for (text, printed) in [
        ("12:13:", "12:13:"),
        ("12:18:14,16", "12:18:14,16"),
        ("12:16:14,14", "12:16:14"),
        ("12:16:14,", "12:16:14"),
        ("+12: 16:014", "12:16:14"),
        ("1:-1:", "1:18446744073709551615:"),
        ("1:9223372036854775807:3", "1:9223372036854775807:3"),
    ] {
        let snapshot = Snapshot::parse(text).unwrap();
        assert_eq!(snapshot.print(), printed);
        let mut wire = Vec::new();
        snapshot.write_binary(&mut wire);
        assert_eq!(Snapshot::read_binary(&wire), Ok(snapshot));
        for length in 0..wire.len() {
            assert!(Snapshot::read_binary(&wire[..length]).is_err());
        }
    }
    for text in [
        "",
        "31:12:",
        "0:1:",
        "12:13:0",
        "12:16:14,13",
        "12:16:16",
        "12:16:,14",
        "12:16",
        "12:16:14x",
        "1:9223372036854775808:3",
    ] {
        assert_eq!(Snapshot::parse(text).map_err(|error| error.sqlstate), Err("22P02"), "{text}");
    }
}

#[test]
fn a_snapshot_shows_what_had_ended() {
    let snapshot = Snapshot::parse("12:18:14,16").unwrap();
    let shown: Vec<u64> = (10..20).filter(|number| snapshot.shows(*number)).collect();
    assert_eq!(shown, [10, 11, 12, 13, 15, 17]);
}
