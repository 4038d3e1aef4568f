use super::*;
use std::collections::BTreeSet;

#[test]
fn new_orders_have_new_keys_and_all_their_line_items() {
    let mut source = NewOrders::new(0.01, 60_000);
    let (mut keys, mut item_keys, mut orders, mut items) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
    // More orders than the scale factor has: the second round must not repeat keys of the first.
    while orders < 20_000 {
        let batch = source.next_batch(5_000).unwrap();
        let key_of = |line: &str| line.split('|').next().unwrap().parse::<i64>().unwrap();
        let text = |at: usize| String::from_utf8(batch.copies[at].bytes.to_vec()).unwrap();
        keys.extend(text(0).lines().map(key_of));
        item_keys.extend(text(1).lines().map(key_of));
        orders += batch.copies[0].rows;
        items += batch.copies[1].rows;
        assert_eq!(keys.last(), Some(&batch.key));
    }
    assert_eq!(keys.len() as u64, orders);
    assert!(keys.first().unwrap() > &60_000);
    assert_eq!(keys, item_keys);
    assert!(items > 3 * orders && items < 5 * orders, "{items} line items of {orders} orders");
}

#[test]
fn rows_are_in_the_form_of_copy() {
    let (pieces, mut received) = channel(PIECES_WAITING);
    generate("region", 1.0, pieces);
    let (bytes, rows) = received.try_recv().unwrap();
    assert_eq!(rows, 5);
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("0|AFRICA|") && !first.ends_with('|'), "{first}");
    assert!(text.ends_with('\n'));
}
