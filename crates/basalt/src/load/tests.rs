use super::*;

#[test]
fn table_names_are_read_as_sql_reads_them() {
    assert_eq!(quote_table("Shop.Orders"), "\"shop\".\"orders\"");
    assert_eq!(quote_table("\"Orders\""), "\"Orders\"");
}

#[test]
fn a_created_table_has_the_files_columns_and_the_key_that_was_asked_for() {
    let column = |name: &str, ty, nullable| FileColumn { name: name.into(), ty, nullable };
    let columns = [column("id", DataType::Int8, false), column("Na\"me", DataType::Text, true)];
    assert_eq!(
        create_table("\"t\"", &columns, &["id".to_string()]).unwrap(),
        "CREATE TABLE IF NOT EXISTS \"t\" (\"id\" bigint NOT NULL, \"Na\"\"me\" text, PRIMARY KEY (\"id\"))"
    );
    assert!(create_table("\"t\"", &columns, &["x".to_string()]).is_err());
}

#[test]
fn columns_match_exactly_first_and_then_in_any_case() {
    let target = [("ID".to_string(), DataType::Int4), ("id".to_string(), DataType::Int8)];
    let chosen = match_columns("f", &["id".to_string(), "Id".to_string()], &target).unwrap();
    assert_eq!(chosen[0].ty, DataType::Int8);
    assert_eq!(chosen[1].ty, DataType::Int4);
    assert!(match_columns("f", &["other".to_string()], &target).is_err());
}
