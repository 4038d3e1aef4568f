use super::*;

fn six_text(text: &str) -> Result<String> {
    let mut out = Vec::new();
    write(&six(parse_six(text)?), &mut out);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[test]
fn addresses_are_read_in_every_form() {
    for text in [
        "08:00:2b:01:02:03",
        "08-00-2b-01-02-03",
        "08002b:010203",
        "08002b-010203",
        "0800.2b01.0203",
        "0800-2b01-0203",
        "08002b010203",
        " 8: 0:2B:1:2:3 ",
        "+8:0x0:2b:1:2:100000003",
    ] {
        assert_eq!(six_text(text), Ok("08:00:2b:01:02:03".to_string()), "{text}");
    }
    for text in ["", "08:00:2b:01:02", "08:00:2b:01:02:03:", "08:00-2b:01:02:03", "0800.2b.01.0203", "x"] {
        assert_eq!(parse_six(text).map_err(|error| error.sqlstate), Err("22P02"), "{text}");
    }
    for text in ["-1:0:2b:1:2:3", "100:0:2b:1:2:3", "12345678901234567890:0:2b:1:2:3"] {
        assert_eq!(parse_six(text).map_err(|error| error.sqlstate), Err("22003"), "{text}");
    }
}

#[test]
fn integers_sort_as_addresses_do() {
    let ascending = ["00:00:00:00:00:00:00:00", "7f:ff:ff:ff:ff:ff:ff:ff", "80:00:00:00:00:00:00:00"];
    let values = ascending.map(|text| parse_eight(text).unwrap());
    assert!(values.is_sorted());
    assert_eq!(narrow(widen(parse_six("08002b010203").unwrap())), parse_six("08002b010203"));
    assert!(narrow(values[0]).is_err());
}
