use super::*;

#[test]
fn an_error_survives_its_way_through_datafusion() {
    let thrown = SqlError::new("22012", "division by zero").with_hint("do not");
    let wrapped = DataFusionError::from(thrown.clone()).context("while projecting");
    assert_eq!(SqlError::from(wrapped), thrown);
    let shared = DataFusionError::Shared(Arc::new(DataFusionError::from(thrown.clone())));
    assert_eq!(SqlError::from(shared), thrown);
}

#[test]
fn the_innermost_position_stays() {
    assert_eq!(SqlError::syntax("x").at(Some(3)).at(Some(1)).position, Some(3));
}
