use super::reader::{CopyReader, FieldColumn};
use super::writer::{CopyWriter, WriterColumn};
use crate::statement::rows::record_batch;
use crate::syntax::{CopyOptions, Statement};
use arrow_array::ArrayRef;
use basalt_expr::EvalContext;
use basalt_types::DataType;
use std::fmt::Write;
use std::sync::Arc;

fn options(text: &str) -> CopyOptions {
    let sql = format!("COPY t FROM STDIN {text}");
    match crate::syntax::parse(&sql).unwrap().remove(0).statement {
        Statement::Copy(copy) => copy.options,
        other => panic!("{other:?}"),
    }
}

/// Reads `input` in chunks of `chunk` bytes into (a int, b text) and prints the rows, or the error.
fn read(with: &str, input: &[u8], chunk: usize) -> String {
    let options = options(with);
    let column = |name: &str, ty| FieldColumn {
        name: name.to_string(),
        ty,
        force_not_null: options.force_not_null.has(name),
        force_null: options.force_null.has(name),
    };
    let columns = vec![column("a", DataType::Int4), column("b", DataType::Text)];
    let mut reader = CopyReader::new("t".into(), columns, options.clone(), Arc::new(EvalContext::at(0)));
    let mut out = String::new();
    let mut emit = |arrays: Vec<ArrayRef>, rows: usize| {
        for row in 0..rows {
            let field = |at: usize, ty: &DataType| {
                let mut text = Vec::new();
                match basalt_expr::io::text::format_cell(ty, &arrays[at], row, &EvalContext::at(0), &mut text).unwrap()
                {
                    true => format!("{:?}", String::from_utf8(text).unwrap()),
                    false => "null".to_string(),
                }
            };
            write!(out, "[{} {}]", field(0, &DataType::Int4), field(1, &DataType::Text)).unwrap();
        }
        Ok(())
    };
    let fed = input.chunks(chunk).try_for_each(|chunk| reader.feed(chunk, &mut emit));
    match fed.and_then(|()| reader.finish(&mut emit)) {
        Ok(()) => out,
        Err(error) => format!("{} {} | {}", error.sqlstate, error.message, error.context.unwrap_or_default()),
    }
}

/// However the bytes are cut, the rows are the same.
fn check(with: &str, input: &str, expect: &str) {
    for chunk in [1, 2, 3, 7, 1000] {
        assert_eq!(read(with, input.as_bytes(), chunk), expect, "{with}: {input:?} in chunks of {chunk}");
    }
}

#[test]
fn text_rows_are_read_as_postgresql_reads_them() {
    check("", "1\tx\n2\t\\N\n\\N\t\n", r#"["1" "x"]["2" null][null ""]"#);
    check("", "1\ta\\tb\\\\\\n\\x41\\101\\q\n", "[\"1\" \"a\\tb\\\\\\nAAq\"]");
    check("", "1\ta\\\nb\n2\tc", "[\"1\" \"a\\nb\"][\"2\" \"c\"]");
    check("", "1\tx\r\n2\ty\r\n", r#"["1" "x"]["2" "y"]"#);
    check("", "1\tx\n\\.\nrubbish", r#"["1" "x"]"#);
    check("(delimiter '|', null 'none')", "1|a\\|b\nnone|none\n", r#"["1" "a|b"][null null]"#);
    check("(header)", "a\tb\n1\tx\n", r#"["1" "x"]"#);
    check(
        "(header match)",
        "a\tc\n1\tx\n",
        "22P04 column name mismatch in header line field 2: got \"c\", expected \"b\" | COPY t, line 1: \"a\tc\"",
    );
}

#[test]
fn csv_rows_are_read_as_postgresql_reads_them() {
    check("csv", "1,x\n2,\n3,\"\"\n", r#"["1" "x"]["2" null]["3" ""]"#);
    check("csv", "1,\"a,\"\"b\"\"\nc\"\n2,d\"e\"f\n", "[\"1\" \"a,\\\"b\\\"\\nc\"][\"2\" \"def\"]");
    check("(format csv, quote '''', escape '\\')", "1,'it\\'s \\\\ ok'\n", r#"["1" "it's \\ ok"]"#);
    check("(format csv, force_null (b))", "1,\"\"\n", r#"["1" null]"#);
    check("(format csv, force_not_null (b))", "1,\n", r#"["1" ""]"#);
    check("csv", "1,\"open\n", "22P04 unterminated CSV quoted field | COPY t, line 1: \"1,\"open\n\"");
}

#[test]
fn errors_say_where() {
    check("", "1\tx\n2\n", "22P04 missing data for column \"b\" | COPY t, line 2: \"2\"");
    check("", "1\tx\ty\n", "22P04 extra data after last expected column | COPY t, line 1: \"1\tx\ty\"");
    check(
        "csv",
        "1,a\n\"2\n\",b\nx,c\n",
        "22P02 invalid input syntax for type integer: \"x\" | COPY t, line 4, column a: \"x\"",
    );
    check("", "1\ta\nx\tb\n", "22P02 invalid input syntax for type integer: \"x\" | COPY t, line 2, column a: \"x\"");
}

#[test]
fn options_are_checked() {
    for (with, sqlstate) in [
        ("(delimiter '||')", "0A000"),
        ("(delimiter 'a')", "22023"),
        ("(quote '''')", "0A000"),
        ("(format csv, delimiter '\"')", "22023"),
        ("(format binary, delimiter ',')", "42601"),
        ("(format xml)", "22023"),
        ("(speed 9)", "42601"),
        ("(encoding 'latin1')", "0A000"),
        ("(encoding 'ISO-8859-15')", "0A000"),
        ("(encoding 'martian')", "22023"),
        ("(header, header)", "42601"),
    ] {
        let error = crate::syntax::parse(&format!("COPY t FROM STDIN {with}")).unwrap_err();
        assert_eq!(error.sqlstate, sqlstate, "{with}: {error}");
    }
}

#[test]
fn all_lines_end_as_the_first_one() {
    let returns = "22P04 literal carriage return found in data | COPY t, line 2";
    check("", "1\tx\n2\ty\r\n", returns);
    check("", "1\tx\n2\ty\r", returns);
    check("", "1\tx\n2\ta\rb\n", returns);
    check("", "1\tx\r\n2\ty\r", returns);
    check("", "1\tx\r\n2\ty\n", "22P04 literal newline found in data | COPY t, line 2");
    check("", "1\tx\r\n2\ty", r#"["1" "x"]["2" "y"]"#);
    check("", "1\tx\r", r#"["1" "x"]"#);
    check("", "1\ta\\\r\n2\tb\n", "[\"1\" \"a\\r\"][\"2\" \"b\"]");
    check("csv", "1,x\n2,y\r\n", "22P04 unquoted carriage return found in data | COPY t, line 2");
    check("csv", "1,x\r\n2,y\n", "22P04 unquoted newline found in data | COPY t, line 2");
    check("csv", "1,\"a\rb\"\n2,\"c\r\n\"\n", "[\"1\" \"a\\rb\"][\"2\" \"c\\r\\n\"]");
    check("csv", "1,\"a\"\"\r\n\"\r\n2,b\r\n", "[\"1\" \"a\\\"\\r\\n\"][\"2\" \"b\"]");
}

/// What is written in a format is read back from it.
#[test]
fn formats_round_trip() {
    for with in ["", "csv", "(format binary)", "(format csv, delimiter '|', quote '''', null 'x')"] {
        let texts = ["plain", "", "a\tb\\\n\r", "x", "it's \"so\" | ,", "\\.", "é"];
        let numbers: ArrayRef = Arc::new(arrow_array::Int32Array::from_iter((0..8).map(|i| (i != 3).then_some(i))));
        let strings = texts.iter().map(|text| Some(*text)).chain([None]);
        let strings: ArrayRef = Arc::new(arrow_array::StringViewArray::from_iter(strings));
        let column = |name: &str, ty| WriterColumn { name: name.to_string(), ty, force_quote: false };
        let columns = vec![column("a", DataType::Int4), column("b", DataType::Text)];
        let mut writer = CopyWriter::new(columns, options(with), Arc::new(EvalContext::at(0)));
        let mut bytes = writer.rows(&record_batch(vec![numbers, strings], 8).unwrap()).unwrap().bytes().to_vec();
        bytes.extend(writer.finish().bytes());
        let mut expect = String::new();
        for (row, text) in texts.iter().map(|text| format!("{text:?}")).chain(["null".to_string()]).enumerate() {
            let number = if row == 3 { "null".to_string() } else { format!("\"{row}\"") };
            write!(expect, "[{number} {text}]").unwrap();
        }
        for chunk in [1, 5, 1000] {
            assert_eq!(read(with, &bytes, chunk), expect, "{with} in chunks of {chunk}");
        }
    }
}

#[test]
fn garbage_in_binary_is_refused() {
    let mut input = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    input.extend([0, 3]);
    assert!(read("binary", &input, 1000).starts_with("22P04 row field count is 3, expected 2"));
    assert!(read("binary", b"not a signature", 1000).starts_with("22P04 COPY file signature"));
    assert!(read("binary", b"", 1000).starts_with("22P04 COPY file signature"));
    assert!(read("binary", &input[..15], 1000).starts_with("22P04 invalid COPY file header (missing length)"));
}

#[test]
fn binary_input_ends_where_postgresql_lets_it_end() {
    let mut input = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    input.extend(b"\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x01x");
    let whole = input.len();
    input.extend(b"\xff\xff");
    let row = r#"["7" "x"]"#;
    for chunk in [1, 4, 1000] {
        for end in [whole, whole + 1, whole + 2] {
            assert_eq!(read("binary", &input[..end], chunk), row, "{end} bytes in chunks of {chunk}");
        }
        for (end, column) in [(whole - 1, "b"), (whole - 5, "b"), (whole - 6, "a"), (21, "a")] {
            let expect = format!("22P04 unexpected EOF in COPY data | COPY t, line 1, column {column}");
            assert_eq!(read("binary", &input[..end], chunk), expect, "{end} bytes in chunks of {chunk}");
        }
        let more = [&input[..], b"x"].concat();
        assert_eq!(
            read("binary", &more, chunk),
            "22P04 received copy data after EOF marker | COPY t, line 2",
            "in chunks of {chunk}"
        );
    }
}

#[test]
fn every_row_is_a_message_and_the_binary_header_comes_with_the_first() {
    let messages = |with: &str, rows: i32| {
        let column = WriterColumn { name: "a".to_string(), ty: DataType::Int4, force_quote: false };
        let mut writer = CopyWriter::new(vec![column], options(with), Arc::new(EvalContext::at(0)));
        let numbers: ArrayRef = Arc::new(arrow_array::Int32Array::from_iter_values(0..rows));
        let chunks = [writer.rows(&record_batch(vec![numbers], rows as usize).unwrap()).unwrap(), writer.finish()];
        let lengths = chunks.iter().flat_map(|chunk| chunk.messages().map(<[u8]>::len).collect::<Vec<_>>());
        lengths.collect::<Vec<_>>()
    };
    assert_eq!(messages("binary", 2), [19 + 10, 10, 2]);
    assert_eq!(messages("binary", 0), [19 + 2]);
    assert_eq!(messages("(format csv, header)", 2), [2, 2, 2]);
    assert_eq!(messages("(format csv, header)", 0), [2]);
    assert_eq!(messages("", 2), [2, 2]);
    assert_eq!(messages("", 0), [0; 0]);
}
