use super::*;
use crate::context::EvalContext;
use exec::Item;

fn printed(text: &str) -> String {
    canonical(text).unwrap_or_else(|error| format!("ERROR {}: {}", error.sqlstate, error.message))
}

fn found(document: &str, path: &str) -> Vec<String> {
    let ctx = EvalContext::at(0);
    let execution = Execution { document, vars: Some("{\"x\": 2}"), use_zone: false, ctx: &ctx };
    let found = execution.query(&parse(path).unwrap()).unwrap();
    let mut out: Vec<String> = found
        .items
        .iter()
        .map(|item| match item {
            Item::Json(part) => part.text().to_string(),
            Item::DateTime(value) => value.type_name().to_string(),
        })
        .collect();
    out.extend(found.error.map(|error| format!("ERROR {}", error.sqlstate)));
    out
}

fn exec_error(document: &str, path: &str) -> &'static str {
    let ctx = EvalContext::at(0);
    let execution = Execution { document, vars: None, use_zone: false, ctx: &ctx };
    execution.query(&parse(path).unwrap()).err().map_or("no error", |error| error.sqlstate)
}

#[test]
fn paths_print_as_postgresql_prints_them() {
    for (text, expected) in [
        ("$.a[last to 1].**{2 to last}.b", "$.\"a\"[last to 1].**{2 to last}.\"b\""),
        ("strict $.a + 1 * 2", "strict ($.\"a\" + 1 * 2)"),
        (
            "$ ? (@.a > 1 || !(@.b == \"x\") && exists(@.c)).size()",
            "$?(@.\"a\" > 1 || !(@.\"b\" == \"x\") && exists (@.\"c\")).size()",
        ),
        ("-(-1)", "1"),
        ("($.a == 1) is unknown", "($.\"a\" == 1) is unknown"),
        ("", "ERROR 22P02: invalid input syntax for type jsonpath: \"\""),
        ("$.", "ERROR 42601: syntax error at end of jsonpath input"),
        ("@", "ERROR 42601: @ is not allowed in root expressions"),
        ("$ like_regex \"(\"", "ERROR 2201B: invalid regular expression: parentheses () not balanced"),
    ] {
        assert_eq!(printed(text), expected, "{text}");
    }
}

#[test]
fn deep_documents_and_long_paths_are_walked_or_refused() {
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    assert!(found(&deep, "$.**").len() >= 1_000);
    let long = format!("${}", ".a".repeat(500));
    assert_eq!(found("{}", &long), Vec::<String>::new());
    assert!(printed(&format!("${}", "[*]".repeat(501))).starts_with("ERROR 54001"));
    assert!(printed(&format!("{}1{}", "(".repeat(1_000), ")".repeat(1_000))).starts_with("ERROR 54001"));
    assert!(printed(&"-".repeat(10_000)).starts_with("ERROR 54001"));
    let nested = format!("{}1{}", "(".repeat(60), ")".repeat(60));
    assert_eq!(printed(&nested), "1");
    assert_eq!(found(&deep, &format!("${}", "[*]".repeat(60))).len(), 1);
    let error = exec_error(&deep, &format!("${}", "[*]".repeat(400)));
    assert_eq!(error, "54001");
}

#[test]
fn ids_of_objects_are_their_places_in_postgresqls_form() {
    assert_eq!(
        found("[{\"a\": 1, \"b\": [1, 2]}, {\"c\": {\"a\": \"bbb\"}}]", "$[*].keyvalue().id"),
        ["12", "12", "72"],
        "as PostgreSQL's regression tests have them"
    );
}
