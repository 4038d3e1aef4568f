use super::*;

fn index(unique: bool, nulls_not_distinct: bool) -> IndexDef {
    let column = |name: &str, id| IndexColumn {
        source: IndexSource::Column(ColumnId(id)),
        name: name.into(),
        ty: DataType::Int4,
        descending: false,
        nulls_first: false,
        opclass: None,
        collation: None,
    };
    IndexDef {
        id: ObjectId(1),
        name: "i".into(),
        method: "btree".into(),
        columns: vec![column("a", 1), column("b", 2)],
        include: Vec::new(),
        unique,
        nulls_not_distinct,
        predicate: None,
        options: Vec::new(),
        constraint: None,
        state: IndexState::Valid,
        entries: IndexDef::entries_table(ObjectId(1), ObjectId(2), "i", TabletId(7), Vec::new()),
    }
}

fn entry(index: &IndexDef, values: [Datum; 2], row: u8) -> Entry {
    index.entry(&values, &values, TabletId(3), &Key::from(&[row][..]))
}

#[test]
fn equal_values_collide_only_in_unique_positions() {
    let (one, two, null) = (Datum::I32(1), Datum::I32(2), Datum::Null);
    let unique = index(true, false);
    let same =
        |index: &IndexDef, values: [Datum; 2]| entry(index, values.clone(), 1).key() == entry(index, values, 2).key();
    assert!(same(&unique, [one.clone(), two.clone()]));
    assert!(!same(&unique, [one.clone(), null.clone()]));
    assert!(same(&index(true, true), [one.clone(), null]));
    assert!(!same(&index(false, false), [one, two]));
}

#[test]
fn entries_begin_with_their_first_values_and_no_others() {
    let index = index(false, false);
    let prefix = prefix_key(&encode_values(&index.columns, &[Datum::I32(0)]), false);
    let begins = |values| entry(&index, values, 9).key().as_bytes().starts_with(prefix.as_bytes());
    assert!(begins([Datum::I32(0), Datum::I32(5)]));
    assert!(begins([Datum::I32(0), Datum::Null]));
    assert!(!begins([Datum::I32(256), Datum::I32(5)]));
    assert!(!begins([Datum::Null, Datum::I32(0)]));
}

#[test]
fn an_entry_leads_to_its_row() {
    let key = Key::from(&[0, 1, 255][..]);
    let made = index(true, false).entry(&[Datum::I32(1), Datum::I32(2)], &[], TabletId(u32::MAX), &key);
    let row = IndexDef::entry_row(&made, TabletId(u32::MAX), &key);
    assert_eq!(IndexDef::base_of(&row), Some((TabletId(u32::MAX), key)));
}

#[test]
fn values_come_back_out_of_an_entry() {
    let made = entry(&index(false, false), [Datum::I32(-5), Datum::Null], 9);
    let values = index(false, false).values_of_key(&made.key());
    assert_eq!(values, Some(vec![Some(Datum::I32(-5)), Some(Datum::Null)]));
}

#[test]
fn entries_have_included_values_if_their_table_has_columns_for_them() {
    let of_before = IndexDef { include: vec![ColumnId(2), ColumnId(1)], ..index(true, false) };
    let (id, tablet) = (of_before.id, of_before.tablet());
    let entries = IndexDef::entries_table(id, ObjectId(2), "i", tablet, vec![DataType::Int4, DataType::Int4]);
    let covering = IndexDef { entries, ..of_before.clone() };
    let base = [Datum::I32(5), Datum::Null];
    let entry_of = |index: &IndexDef, base: &[Datum]| index.entry(&base[..1], base, TabletId(3), &Key::from(&[9][..]));
    let row_of = |index: &IndexDef| IndexDef::entry_row(&entry_of(index, &base), TabletId(3), &Key::from(&[9][..]));
    assert_eq!(row_of(&of_before).len(), 3);
    assert_eq!(row_of(&covering)[3..], [Datum::Null, Datum::I32(5)]);
    assert_eq!(IndexDef::base_of(&row_of(&covering)), Some((TabletId(3), Key::from(&[9][..]))));
    // They are no part of the key, and a change of one is a change of the entry.
    let other = [Datum::I32(5), Datum::I32(7)];
    assert_eq!(entry_of(&covering, &base).key(), entry_of(&covering, &other).key());
    assert_ne!(entry_of(&covering, &base).included, entry_of(&covering, &other).included);
    assert_eq!(covering.place_of_included(ColumnId(1)), Some(ColumnId(5)));
    assert_eq!(of_before.place_of_included(ColumnId(1)), None);
}

#[test]
fn a_change_of_an_included_column_touches_the_index() {
    let plain = IndexDef { include: vec![ColumnId(3)], ..index(false, false) };
    let (id, tablet) = (plain.id, plain.tablet());
    let entries = IndexDef::entries_table(id, ObjectId(2), "i", tablet, vec![DataType::Float8]);
    let covering = IndexDef { entries, ..plain.clone() };
    let row = |last: f64| [Datum::I32(1), Datum::I32(2), Datum::F64(last)];
    assert!(plain.is_untouched(&row(0.0), &row(-0.0)));
    assert!(!covering.is_untouched(&row(0.0), &row(-0.0)));
    assert!(covering.is_untouched(&row(f64::NAN), &row(f64::NAN)));
}
