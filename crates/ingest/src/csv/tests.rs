use super::*;
use basalt_sched::Os;

fn infer(text: &str, options: &CsvOptions) -> Vec<(String, DataType)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file.csv");
    let os = Os::real();
    os.fs.write_atomically(&path, text.as_bytes()).unwrap();
    let file = CsvFile::open(&*os.fs, &path).unwrap();
    file.infer(options).unwrap().into_iter().map(|column| (column.name, column.ty)).collect()
}

fn comma() -> CsvOptions {
    CsvOptions { delimiter: b',', header: true, null: String::new() }
}

fn expect(columns: &[(&str, DataType)]) -> Vec<(String, DataType)> {
    columns.iter().map(|(name, ty)| (name.to_string(), ty.clone())).collect()
}

#[test]
fn types_are_the_narrowest_that_hold_every_value() {
    let text = "i,d,f,b,day,at,zip,empty\r\n\
                1,1.50,1e3,t,2024-01-31,2024-01-31 10:00:00,01234,\r\n\
                -20,,2.5,f,2024-02-01,2024-01-31T10:00:00.5,99999,\r\n";
    let expected = [
        ("i", DataType::Int8),
        ("d", DataType::Numeric(None)),
        ("f", DataType::Float8),
        ("b", DataType::Bool),
        ("day", DataType::Date),
        ("at", DataType::Timestamp),
        ("zip", DataType::Text),
        ("empty", DataType::Text),
    ];
    assert_eq!(infer(text, &comma()), expect(&expected));
}

#[test]
fn times_with_a_zone_and_without_are_told_apart() {
    let text = "tz,local,mixed,time,score,id\n\
                2024-01-31 10:00:00Z,2024-01-31 24:00:00,2024-01-31 10:00,10:00:00,10:15,6f0d0e0a-0b0c-4d0e-8f00-0123456789AB\n\
                2024-01-31T10:00:00.5+05:30,2024-01-31 9:00,2024-01-31 10:00-08,23:59:59.25,10:00,\n";
    let expected = [
        ("tz", DataType::TimestampTz),
        ("local", DataType::Timestamp),
        ("mixed", DataType::Text),
        ("time", DataType::Time),
        ("score", DataType::Text),
        ("id", DataType::Uuid),
    ];
    assert_eq!(infer(text, &comma()), expect(&expected));
}

#[test]
fn quotes_hold_delimiters_and_line_ends() {
    let text = "a,\"b,c\"\n\"x\ny\",\"\"\"1\"\"\"\n";
    assert_eq!(infer(text, &comma()), expect(&[("a", DataType::Text), ("b,c", DataType::Text)]));
}

#[test]
fn without_a_header_columns_are_numbered() {
    let options = CsvOptions { delimiter: b'|', header: false, null: "\\N".into() };
    let expected = [("column1", DataType::Int8), ("column2", DataType::Text)];
    assert_eq!(infer("1|a\n\\N|b", &options), expect(&expected));
}
