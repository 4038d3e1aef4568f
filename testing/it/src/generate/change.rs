//! Statements that change rows and tables.

use super::expr::{Scope, ScopeColumn};
use super::node::{Node, Role};
use super::schema::{Table, TableColumn};
use super::{Generator, Statement};
use rand::Rng;
use rand::seq::IndexedRandom;

impl Generator<'_> {
    /// An INSERT, UPDATE, DELETE or MERGE, perhaps inside WITH.
    pub fn change(&mut self) -> Statement {
        let writable: Vec<Table> = self.tables.iter().filter(|table| table.writable).cloned().collect();
        let table = writable.choose(&mut self.rng).expect("there are tables").clone();
        let node = match self.rng.random_range(0..20) {
            0..=6 => self.insert(&table),
            7..=12 => self.update(&table),
            13..=15 => self.delete(&table),
            16 | 17 => self.merge(&table),
            _ => self.writable_with(&table),
        };
        Statement { node, ordered: false, changes: Some(table.name) }
    }

    fn insert(&mut self, table: &Table) -> Node {
        let next = self.next_id.get(&table.name).copied().unwrap_or_default();
        let names = table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>().join(", ");
        let node = Node::fixed(format!("INSERT INTO {} ({names}) ", table.name)).uses("statement INSERT");
        if self.rng.random_bool(0.3) {
            let source = self.tables.choose(&mut self.rng).expect("there are tables").clone();
            let alias = self.alias();
            let scope = source.scope(&alias);
            let values: Vec<Node> = table.columns[1..].iter().map(|column| self.expr(column.ty, &scope, 2)).collect();
            let condition = self.condition(&scope, 2);
            let node = node.text(format!("SELECT {alias}.id + {next}, ")).list(values, ", ");
            let node = node.text(format!(" FROM {} {alias} WHERE {alias}.id < 20 AND ", source.name)).node(condition);
            self.next_id.insert(table.name.clone(), next + 20);
            return self.returning(node, table, &table.name);
        }
        let conflicts = self.rng.random_bool(0.4);
        let count = self.rng.random_range(1..5);
        let rows: Vec<Node> = (0..count)
            .map(|row| {
                let id = if conflicts && self.rng.random() { row } else { next + row };
                let values: Vec<Node> = table
                    .columns
                    .iter()
                    .map(|column| match column.name.as_str() {
                        "id" => Node::fixed(id.to_string()),
                        _ if self.rng.random_ratio(1, 12) => Node::fixed("DEFAULT"),
                        _ if self.rng.random_bool(0.3) => self.expr(column.ty, &Scope::default(), 2),
                        _ => Node::fixed(self.stored(column, id)),
                    })
                    .collect();
                Node::new(Role::Fixed).text("(").list(values, ", ").text(")")
            })
            .collect();
        self.next_id.insert(table.name.clone(), next + count);
        let mut node = node.text("VALUES ").shrinking_list(rows, ", ");
        if conflicts {
            node = match self.rng.random_range(0..4) {
                0 => node.node(Node::optional(" ON CONFLICT DO NOTHING").uses("clause ON CONFLICT DO NOTHING")),
                1 => node.node(Node::optional(" ON CONFLICT (id) DO NOTHING").uses("clause ON CONFLICT DO NOTHING")),
                _ => {
                    let mut scope = table.scope("excluded");
                    scope.columns.extend(table.scope(&table.name).columns);
                    let sets = self.assignments(table, &scope);
                    let node = node.text(" ON CONFLICT (id) DO UPDATE SET ").node(sets);
                    let condition = self.condition(&scope, 2);
                    let condition = Node::optional(" WHERE ").node(condition);
                    node.node(condition).uses("clause ON CONFLICT DO UPDATE")
                }
            };
        }
        self.returning(node, table, &table.name)
    }

    fn assignments(&mut self, table: &Table, scope: &Scope) -> Node {
        let count = self.rng.random_range(1..4_usize).min(table.columns.len() - 1);
        let columns: Vec<TableColumn> = table.columns[1..].choose_multiple(&mut self.rng, count).cloned().collect();
        let sets: Vec<Node> = columns
            .into_iter()
            .map(|column| {
                let value = match self.rng.random_ratio(1, 15) {
                    true => Node::fixed("DEFAULT"),
                    false => self.expr(column.ty, scope, 2),
                };
                Node::fixed(format!("{} = ", column.name)).node(value)
            })
            .collect();
        Node::new(Role::Fixed).shrinking_list(sets, ", ")
    }

    fn update(&mut self, table: &Table) -> Node {
        let alias = self.alias();
        let mut scope = table.scope(&alias);
        let node = Node::fixed(format!("UPDATE {} AS {alias} SET ", table.name)).uses("statement UPDATE");
        if self.rng.random_bool(0.35) {
            let (source, join) = self.source(&mut scope, &alias);
            let sets = self.assignments(table, &scope);
            let condition = self.condition(&scope, 2);
            let node = node.node(sets).text(format!(" FROM {source} WHERE {join}"));
            let node = node.node(Node::optional(" AND ").node(condition)).uses("clause UPDATE FROM");
            return self.returning(node, table, &alias);
        }
        let sets = self.assignments(table, &scope);
        let condition = self.condition(&scope, 3);
        let node = node.node(sets).node(Node::optional(" WHERE ").node(condition));
        self.returning(node, table, &alias)
    }

    /// Another table at most one row of which belongs to a row of the target.
    fn source(&mut self, scope: &mut Scope, target: &str) -> (String, String) {
        let source = self.tables.choose(&mut self.rng).expect("there are tables").clone();
        let alias = self.alias();
        scope.columns.extend(source.scope(&alias).columns);
        (format!("{} {alias}", source.name), format!("{alias}.id = {target}.id"))
    }

    fn delete(&mut self, table: &Table) -> Node {
        let alias = self.alias();
        let mut scope = table.scope(&alias);
        let node = Node::fixed(format!("DELETE FROM {} AS {alias}", table.name)).uses("statement DELETE");
        // Tables should not run empty.
        let some = format!("{alias}.id % 5 = {}", self.rng.random_range(0..5));
        let node = if self.rng.random_bool(0.35) {
            let (source, join) = self.source(&mut scope, &alias);
            node.text(format!(" USING {source} WHERE {join} AND {some}")).uses("clause DELETE USING")
        } else {
            node.text(format!(" WHERE {some}"))
        };
        let condition = self.condition(&scope, 2);
        let node = node.node(Node::optional(" AND ").node(condition));
        self.returning(node, table, &alias)
    }

    fn merge(&mut self, table: &Table) -> Node {
        let target = self.alias();
        let mut scope = table.scope(&target);
        let source = self.tables.choose(&mut self.rng).expect("there are tables").clone();
        let alias = self.alias();
        let own = source.scope(&alias);
        scope.columns.extend(own.columns.clone());
        let next = self.next_id.get(&table.name).copied().unwrap_or_default();
        let names = table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>().join(", ");
        let node = Node::fixed(format!("MERGE INTO {} {target} USING {} {alias}", table.name, source.name));
        let mut node = node.text(format!(" ON {target}.id = {alias}.id")).uses("statement MERGE");
        if self.rng.random_bool(0.7) {
            let condition = self.condition(&scope, 2);
            let sets = self.assignments(table, &scope);
            let action = Node::optional(" WHEN MATCHED AND ").node(condition).text(" THEN UPDATE SET ").node(sets);
            node = node.node(action.uses("clause WHEN MATCHED UPDATE"));
        }
        if self.rng.random_bool(0.4) {
            let condition = self.condition(&scope, 1);
            let action = Node::optional(format!(" WHEN MATCHED AND {target}.id % 5 = 1 AND ")).node(condition);
            node = node.node(action.text(" THEN DELETE").uses("clause WHEN MATCHED DELETE"));
        }
        if self.rng.random_bool(0.5) {
            let values: Vec<Node> = table.columns[1..].iter().map(|column| self.expr(column.ty, &own, 2)).collect();
            let condition = self.condition(&own, 1);
            let action = Node::optional(format!(" WHEN NOT MATCHED AND {alias}.id < 20 AND ")).node(condition);
            let action = action.text(format!(" THEN INSERT ({names}) VALUES ({alias}.id + {next}, "));
            node = node.node(action.list(values, ", ").text(")").uses("clause WHEN NOT MATCHED INSERT"));
            self.next_id.insert(table.name.clone(), next + 20);
        }
        node.text(" WHEN MATCHED THEN DO NOTHING")
    }

    /// A change whose returned rows a query reads.
    fn writable_with(&mut self, table: &Table) -> Node {
        let name = self.alias();
        let inner = match self.rng.random_range(0..3) {
            0 => self.insert(table),
            1 => self.update(table),
            _ => self.delete(table),
        };
        // A bare name after RETURNING names a column.
        let inner = match inner.sql().contains(" RETURNING ") {
            true => return inner,
            false => inner.text(" RETURNING id AS c0"),
        };
        let node = Node::fixed(format!("WITH {name} AS (")).node(inner);
        let node = node.text(format!(") SELECT count(*), min(c0), (SELECT count(*) FROM {}) FROM {name}", table.name));
        node.uses("clause writable WITH")
    }

    fn returning(&mut self, node: Node, table: &Table, alias: &str) -> Node {
        if self.rng.random_bool(0.6) {
            return node;
        }
        let scope = table.scope(alias);
        let items: Vec<Node> = (0..self.rng.random_range(1..3))
            .map(|index| {
                let ty = self.any_type(false);
                let value = self.expr(ty, &scope, 2);
                Node::new(Role::Fixed).node(value).text(format!(" AS c{index}"))
            })
            .collect();
        node.node(Node::optional(" RETURNING ").list(items, ", ").uses("clause RETURNING"))
    }

    /// A change of a table's definition, and of what is known of it. It may fail: then nothing is changed.
    pub fn definition(&mut self) -> (Statement, Vec<Table>) {
        let mut after = self.tables.clone();
        let position = self.rng.random_range(0..after.len());
        let next = after.len();
        let table = after[position].name.clone();
        let plain = |text: String, uses: &str| {
            let node = Node::fixed(text).uses(uses);
            Statement { node, ordered: false, changes: None }
        };
        let statement = match self.rng.random_range(0..8) {
            0 if after[position].writable && after[position].columns.len() < 12 => {
                let ty = self.any_type(false);
                let name = self.alias();
                let declared = self.types.name(ty).to_string();
                let default = match self.rng.random() {
                    true => format!(" DEFAULT {}", self.literal(ty).sql()),
                    false => String::new(),
                };
                let sql = format!("ALTER TABLE {table} ADD COLUMN {name} {declared}{default}");
                after[position].columns.push(TableColumn { name, ty, declared });
                plain(sql, "statement ALTER TABLE ADD COLUMN")
            }
            1 if after[position].writable && after[position].columns.len() > 4 => {
                let last = after[position].columns.pop().expect("more than four");
                plain(format!("ALTER TABLE {table} DROP COLUMN {}", last.name), "statement ALTER TABLE DROP COLUMN")
            }
            2 if after[position].writable => {
                let index = self.rng.random_range(1..after[position].columns.len());
                let name = self.alias();
                let column = &mut after[position].columns[index];
                let sql = format!("ALTER TABLE {table} RENAME COLUMN {} TO {name}", column.name);
                column.name = name;
                plain(sql, "statement ALTER TABLE RENAME COLUMN")
            }
            3 if after[position].writable => {
                let index = self.rng.random_range(1..after[position].columns.len());
                let column = &after[position].columns[index];
                match self.rng.random_ratio(1, 3) {
                    true => plain(
                        format!("CREATE UNIQUE INDEX ON {table} ({}) WHERE id > 20", column.name),
                        "statement CREATE UNIQUE INDEX",
                    ),
                    false => plain(
                        format!("CREATE INDEX ON {table} ({}) INCLUDE (id)", column.name),
                        "statement CREATE INDEX",
                    ),
                }
            }
            4 if next < 8 => {
                let name = self.alias();
                let source = after[position].clone();
                let list = source.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>().join(", ");
                let condition = self.condition(&source.scope(&source.name), 2);
                let node = Node::fixed(format!("CREATE VIEW {name} AS SELECT {list} FROM {table} WHERE "));
                let node = node.node(condition).uses("statement CREATE VIEW");
                after.push(Table { name, columns: source.columns, writable: false });
                Statement { node, ordered: false, changes: None }
            }
            5 if next < 8 => {
                let name = self.alias();
                let source = after[position].clone();
                let sql = format!("CREATE TABLE {name} AS SELECT * FROM {table}");
                after.push(Table { name, columns: source.columns, writable: false });
                plain(sql, "statement CREATE TABLE AS")
            }
            _ => {
                let index = self.rng.random_range(1..after[position].columns.len());
                let (ty, name) = (after[position].columns[index].ty, after[position].columns[index].name.clone());
                let default = self.literal(ty).sql();
                let sql = format!("ALTER TABLE {table} ALTER COLUMN {name} SET DEFAULT {default}");
                plain(sql, "statement ALTER TABLE SET DEFAULT")
            }
        };
        (statement, after)
    }

    /// `PREPARE`, an `EXECUTE` of it, and `DEALLOCATE`.
    pub fn prepared(&mut self) -> Vec<Statement> {
        let types: Vec<_> = (0..self.rng.random_range(1..4)).map(|_| self.any_type(true)).collect();
        let columns = types.iter().enumerate();
        let parameters = columns.map(|(index, ty)| ScopeColumn { sql: format!("${}", index + 1), ty: *ty });
        let mut scope = Scope { columns: parameters.collect() };
        let table = self.tables.choose(&mut self.rng).expect("there are tables").clone();
        let alias = self.alias();
        scope.columns.extend(table.scope(&alias).columns);
        let ty = self.any_type(false);
        let (value, condition) = (self.expr(ty, &scope, 2), self.condition(&scope, 3));
        let name = self.alias();
        let list = types.iter().map(|ty| self.types.name(*ty)).collect::<Vec<_>>().join(", ");
        let prepare = Node::fixed(format!("PREPARE {name} ({list}) AS SELECT ")).node(value);
        let prepare = prepare.text(format!(" AS c0 FROM {} {alias} WHERE ", table.name)).node(condition);
        let mut out = vec![prepare.uses("statement PREPARE")];
        for _ in 0..2 {
            let values: Vec<Node> = types.iter().map(|ty| self.literal(*ty)).collect();
            let execute = Node::fixed(format!("EXECUTE {name}(")).list(values, ", ").text(")");
            out.push(execute.uses("statement EXECUTE"));
        }
        out.push(Node::fixed(format!("DEALLOCATE {name}")).uses("statement DEALLOCATE"));
        out.into_iter().map(|node| Statement { node, ordered: false, changes: None }).collect()
    }
}
