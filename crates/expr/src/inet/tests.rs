use super::*;

fn inet(text: &str) -> Inet {
    parse_inet(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn bytes_sort_as_networks_do() {
    let ascending = [
        "0.0.0.0/0",
        "1.2.3.4/0",
        "9.255.255.255",
        "10.0.0.0/8",
        "10.1.2.3/8",
        "10.255.0.0/8",
        "10.0.0.0/9",
        "10.0.0.0",
        "10.1.0.0/16",
        "10.1.0.1",
        "255.255.255.255",
        "::/0",
        "::1/0",
        "::",
        "::1",
        "1::/16",
        "1::",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ];
    for pair in ascending.windows(2) {
        assert!(inet(pair[0]).encode() < inet(pair[1]).encode(), "{pair:?}");
    }
    for text in ascending {
        assert_eq!(Inet::decode(&inet(text).encode()), Ok(inet(text)), "{text}");
        assert_eq!(inet(text).print(), text);
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let whole = inet("10.1.2.3/8").encode();
    for length in 0..whole.len() {
        let cut = Inet::decode(&whole[..length]);
        assert!(cut.is_err() || length == 6, "{length}: {cut:?}");
    }
    assert!(Inet::decode(&[4, 1, 2, 3, 4, 33]).is_err());
    assert!(Inet::decode(&[5, 1, 2, 3, 4, 32]).is_err());
}

#[test]
fn addresses_end_where_their_family_ends() {
    assert!(inet("255.255.255.255").plus(1).is_err());
    assert!(inet("0.0.0.0").plus(-1).is_err());
    assert!(inet("::").plus(-1).is_err());
    assert!(inet("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").plus(1).is_err());
    assert_eq!(inet("::").plus(i128::from(i64::MAX)).map(Inet::print), Ok("::7fff:ffff:ffff:ffff".to_string()));
    assert!(inet("ffff::").distance(inet("::")).is_err());
    assert_eq!(inet("::").distance(inet("::8000:0:0:0")), Ok(i64::MIN));
}
