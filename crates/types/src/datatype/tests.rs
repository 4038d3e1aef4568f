use super::DataType;

#[test]
fn an_oid_names_the_type_that_has_it() {
    for oid in [16, 20, 1700, 1184, 3802, 2205, 705, 2278, 1007, 1231] {
        assert_eq!(DataType::from_oid(oid).map(|ty| ty.oid()), Some(oid));
    }
    // Nothing, anyarray, record, and an oid that nobody has.
    for oid in [0, 2277, 2249, 4_000_000_000] {
        assert_eq!(DataType::from_oid(oid), None);
    }
}
