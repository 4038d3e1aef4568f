//! What may vanish vanishes, and an operand takes its expression's place.

use super::{Node, Role};
use crate::generate::types::Types;

#[test]
fn a_statement_shrinks_to_its_parts() {
    let int4 = Types::builtin().named("int4").expect("int4");
    let leaf = |text: &str| Node::expr(int4).text(text);
    let sum = Node::expr(int4).node(leaf("a")).text(" + ").node(leaf("b"));
    let statement = Node::new(Role::Fixed).text("SELECT ").node(sum).node(Node::optional(" LIMIT 1"));
    let smaller: Vec<String> = statement.smaller(&|_| "0".into()).iter().map(Node::sql).collect();
    assert_eq!(
        smaller,
        [
            "SELECT a LIMIT 1",
            "SELECT b LIMIT 1",
            "SELECT 0 LIMIT 1",
            "SELECT 0 + b LIMIT 1",
            "SELECT a + 0 LIMIT 1",
            "SELECT a + b"
        ]
    );
}

#[test]
fn what_cannot_become_smaller_ends_the_search() {
    let int4 = Types::builtin().named("int4").expect("int4");
    let mut node = Node::expr(int4).node(Node::expr(int4).text("x")).text(" * ").node(Node::expr(int4).text("y"));
    let mut steps = 0;
    while let Some(next) = node.smaller(&|_| "0".into()).into_iter().next_back() {
        node = next;
        steps += 1;
        assert!(steps < 20, "{}", node.sql());
    }
}
