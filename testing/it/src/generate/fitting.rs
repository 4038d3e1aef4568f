//! Arguments that functions take: of the words for a unit of time, say, few texts are one.

const UNITS: &[&str] =
    &["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "century"];
const SMALL: &[&str] = &["0", "1", "2", "5", "11"];
const FROM_ONE: &[&str] = &["1", "2", "3"];
const FLAGS: &[&str] = &["", "g", "i", "n", "x", "gi"];
const DATES: &[&str] = &["YYYY-MM-DD", "DD Mon YYYY", "HH24:MI:SS", "FMMonth FMDD, YYYY", "J", "IYYY-IW-ID"];
const NUMBERS: &[&str] = &["999D99", "FM9990.00", "S9999", "9.99EEEE", "RN", "000"];

/// Values for an argument (counted from 0) of a function or operator, all but few of which it takes. None if it
/// takes what there is of its type.
pub(super) fn values(function: &str, argument: usize, ty: &str) -> &'static [&'static str] {
    match (function, argument, ty) {
        ("array_fill", 1.., _) => &["{2}", "{0}", "{2,3}"],
        ("date_trunc" | "date_part", 0, "text") => UNITS,
        ("date_trunc", 2, "text") => &["UTC", "Europe/Berlin", "America/New_York"],
        ("timezone", 0, "text") => &["UTC", "Europe/Berlin", "Asia/Tokyo", "+03"],
        ("date_bin", 0, _) => &["15 minutes", "1 day", "2 hours", "00:00:07"],
        ("make_date" | "make_time" | "make_timestamp" | "make_timestamptz", 0, "int4") => &["1", "7", "12", "20"],
        ("make_date" | "make_time" | "make_timestamp" | "make_timestamptz", 1 | 2, "int4") => &["1", "5", "11", "12"],
        ("make_timestamp" | "make_timestamptz", 3 | 4, "int4") => &["0", "5", "23"],
        ("make_time" | "make_timestamp" | "make_timestamptz", _, "float8") => &["0", "1.5", "59.999999"],
        ("make_timestamptz", 6, "text") => &["UTC", "Europe/Berlin", "+05"],
        ("make_interval", ..) => SMALL,
        ("regexp_match" | "regexp_matches" | "regexp_split_to_array" | "regexp_split_to_table", 2, "text") => {
            &["", "i", "n", "x"]
        }
        ("regexp_replace", 3 | 5, "text") => FLAGS,
        ("regexp_count", 3, "text") | ("regexp_like", 2, "text") => &["", "i", "n"],
        ("regexp_instr", 5, "text") | ("regexp_substr", 4, "text") => &["", "i", "n"],
        ("regexp_instr", 4, "int4") => &["0", "1"],
        ("regexp_count" | "regexp_instr" | "regexp_substr" | "regexp_replace", 2.., "int4") => FROM_ONE,
        ("similar_escape" | "similar_to_escape" | "like_escape", 1, "text") => &["", "#", "!"],
        ("to_ascii", 1, "int4") => &["8", "16"],
        ("to_ascii", 1, "name") => &["latin1", "latin9"],
        ("to_char", 1, "text") => &["YYYY-MM-DD HH24:MI:SS", "999D99", "FM000", "Day", "SYYYY", "RN"],
        ("to_date" | "to_timestamp", 0, "text") => &["2024-02-29", "1999-12-31", "01 Jan 2020", "2451187"],
        ("to_date" | "to_timestamp", 1, "text") => DATES,
        ("to_number", 0, "text") => &["12.5", "-7", "1,024", "0"],
        ("to_number", 1, "text") => NUMBERS,
        ("int4range" | "int8range" | "numrange" | "daterange" | "tsrange" | "tstzrange", 2, "text") => {
            &["[)", "[]", "(]", "()"]
        }
        ("trim_array", 1, _) => &["0", "1"],
        ("get_byte" | "get_bit" | "set_byte" | "set_bit", 1, _) => &["0", "1"],
        ("set_bit", 2, _) => &["0", "1"],
        ("encode" | "decode", 1, "text") => &["hex", "base64", "escape"],
        ("decode", 0, "text") => &["", "41", "abcd"],
        ("convert_from" | "convert_to", 1, "name") => &["UTF8", "LATIN1"],
        ("normalize" | "is_normalized", 1, "text") => &["NFC", "NFD", "NFKC", "NFKD"],
        ("chr", 0, _) => &["65", "223", "8364"],
        ("ln" | "log" | "log10" | "sqrt" | "dsqrt", ..) => &["1", "2.5", "100", "0.001"],
        ("acos" | "asin" | "atanh" | "acosd" | "asind", ..) => &["0", "0.5", "-0.25"],
        ("acosh", ..) => &["1", "2.5"],
        ("power" | "pow" | "^", 1, _) => &["0", "2", "3"],
        ("exp" | "sinh" | "cosh", ..) => &["0", "1", "-2.5"],
        ("jsonb_object" | "json_object", _, "text[]") => &["{a,1}", "{a,b,c,d}", "{}"],
        ("jsonb_path_query" | "jsonb_path_query_array" | "jsonb_path_query_first" | "jsonb_path_exists", 1, _) => {
            &["$", "$.a", "$[*]", "$.**"]
        }
        ("jsonb_set" | "jsonb_insert" | "jsonb_set_lax" | "jsonb_delete_path", 0, _) => {
            &["{}", "[1, 2]", r#"{"a": {"b": 1}}"#]
        }
        ("jsonb_set" | "jsonb_insert" | "jsonb_set_lax" | "jsonb_delete_path", 1, _) => &["{a}", "{0}", "{a,b}", "{1}"],
        (
            "jsonb_array_length"
            | "jsonb_array_elements"
            | "jsonb_array_elements_text"
            | "json_array_length"
            | "json_array_elements"
            | "json_array_elements_text",
            ..,
        ) => &["[]", "[1, null, {}]"],
        (
            "jsonb_object_keys" | "jsonb_each" | "jsonb_each_text" | "json_object_keys" | "json_each"
            | "json_each_text",
            ..,
        ) => &["{}", r#"{"a": 1, "b": null}"#],
        _ => &[],
    }
}
