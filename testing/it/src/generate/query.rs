//! Queries: joins, groups, windows, set operations, WITH, subqueries.
//!
//! Every query has one answer: rows are numbered, cut off and collected only in an order without ties.

use super::Generator;
use super::expr::{Scope, ScopeColumn};
use super::node::{Node, Role};
use super::types::Ty;
use rand::Rng;
use rand::seq::IndexedRandom;

/// A query, the types of its columns (named `c0`, `c1`, …), and whether their order is told.
pub struct Select {
    pub node: Node,
    pub columns: Vec<Ty>,
    pub ordered: bool,
}

/// A FROM clause.
struct From {
    node: Node,
    scope: Scope,
    /// Expressions that together tell its rows apart; none if nothing does.
    identity: Vec<String>,
}

impl Generator<'_> {
    pub fn select(&mut self, depth: u32) -> Select {
        match self.rng.random_range(0..100) {
            0..=19 => self.values_only(depth),
            20..=49 => self.plain(depth),
            50..=69 => self.grouped(depth),
            70..=79 => self.windowed(depth),
            80..=87 => self.set_operation(depth),
            88..=95 => self.with(depth),
            _ => self.set_returning(depth),
        }
    }

    fn values_only(&mut self, depth: u32) -> Select {
        let columns: Vec<Ty> = (0..self.rng.random_range(1..4)).map(|_| self.any_type(false)).collect();
        if self.rng.random_ratio(1, 10) {
            let rows: Vec<Node> = (0..self.rng.random_range(1..4))
                .map(|_| {
                    let values: Vec<Node> =
                        columns.iter().map(|ty| self.expr(*ty, &Scope::default(), depth.min(2))).collect();
                    Node::new(Role::Fixed).text("(").list(values, ", ").text(")")
                })
                .collect();
            let names = names(columns.len());
            let node = Node::new(Role::Fixed).text("SELECT * FROM (VALUES ").shrinking_list(rows, ", ");
            let node = node.text(format!(") v({names})")).uses("clause VALUES");
            return Select { node, columns, ordered: false };
        }
        let items = self.items(&columns, &Scope::default(), depth + 1);
        Select { node: Node::fixed("SELECT ").node(items), columns, ordered: false }
    }

    fn plain(&mut self, depth: u32) -> Select {
        let from = self.from(depth);
        let inner = from.scope.clone();
        let distinct = self.rng.random_ratio(1, 8);
        let columns: Vec<Ty> =
            (0..self.rng.random_range(1..5)).map(|_| self.column_type(&from.scope, distinct)).collect();
        let items = self.items(&columns, &inner, depth);
        let condition = self.optional_where(&inner, depth);
        if self.rng.random_ratio(1, 14) && !from.identity.is_empty() {
            let ty = self.compared_type(&from.scope);
            let key = self.expr(ty, &from.scope, 1).sql();
            let node = Node::fixed(format!("SELECT DISTINCT ON ({key}) ")).node(items).node(from.node).node(condition);
            let node = node.text(format!(" ORDER BY {key}, {}", from.identity.join(", "))).uses("clause DISTINCT ON");
            return Select { node, columns, ordered: false };
        }
        let head = if distinct { "SELECT DISTINCT " } else { "SELECT " };
        let mut node = Node::fixed(head).node(items).node(from.node).node(condition);
        if distinct {
            node = node.uses("clause DISTINCT");
        }
        let (node, ordered) = self.ordered(node, &columns);
        Select { node, columns, ordered }
    }

    /// Adds ORDER BY over all columns, perhaps LIMIT and OFFSET.
    fn ordered(&mut self, node: Node, columns: &[Ty]) -> (Node, bool) {
        let sorts = columns.iter().all(|ty| self.types.info(*ty).sorts);
        if !sorts || self.rng.random_bool(0.5) {
            return (node, false);
        }
        let keys: Vec<String> = (1..=columns.len()).map(|position| format!("{position}{}", self.direction())).collect();
        let mut tail = Node::optional(format!(" ORDER BY {}", keys.join(", "))).uses("clause ORDER BY");
        if self.rng.random_bool(0.5) {
            let limit = self.rng.random_range(0..12);
            let text = match self.rng.random_range(0..3) {
                0 => format!(" LIMIT {limit}"),
                1 => format!(" OFFSET {} LIMIT {limit}", self.rng.random_range(0..4)),
                _ => format!(" FETCH FIRST {limit} ROWS {}", if self.rng.random() { "ONLY" } else { "WITH TIES" }),
            };
            tail = tail.node(Node::optional(text).uses("clause LIMIT"));
        }
        (node.node(tail), true)
    }

    fn direction(&mut self) -> &'static str {
        ["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"].choose(&mut self.rng).expect("some")
    }

    fn items(&mut self, columns: &[Ty], scope: &Scope, depth: u32) -> Node {
        let items: Vec<Node> = columns
            .iter()
            .enumerate()
            .map(|(index, ty)| Node::new(Role::Fixed).node(self.expr(*ty, scope, depth)).text(format!(" AS c{index}")))
            .collect();
        Node::new(Role::Fixed).shrinking_list(items, ", ")
    }

    fn column_type(&mut self, scope: &Scope, sorts: bool) -> Ty {
        let types = self.types;
        match scope.columns.choose(&mut self.rng) {
            Some(column) if self.rng.random_bool(0.5) && (types.info(column.ty).sorts || !sorts) => column.ty,
            _ => self.any_type(sorts),
        }
    }

    fn optional_where(&mut self, scope: &Scope, depth: u32) -> Node {
        match self.rng.random_bool(0.6) {
            true => Node::optional(" WHERE ").node(self.condition(scope, depth)).uses("clause WHERE"),
            false => Node::new(Role::Fixed),
        }
    }

    /// ` FROM …`.
    fn from(&mut self, depth: u32) -> From {
        let mut from = self.relation(depth);
        from.node = Node::fixed(" FROM ").node(from.node);
        let joins = match self.rng.random_range(0..10) {
            0..=4 => 0,
            5..=8 => 1,
            _ => 2,
        };
        for _ in 0..joins {
            from = self.join(from, depth);
        }
        from
    }

    fn join(&mut self, left: From, depth: u32) -> From {
        if self.rng.random_ratio(1, 8) {
            return self.lateral(left, depth);
        }
        let right = self.relation(depth);
        let mut scope = left.scope.clone();
        scope.columns.extend(right.scope.columns.clone());
        let kind = *["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"].choose(&mut self.rng).expect("some");
        let node = Node::optional(format!(" {kind} ")).node(right.node).uses(format!("clause {kind}"));
        let node = match kind {
            "CROSS JOIN" => node,
            _ => node.text(" ON ").node(self.join_condition(&left.scope, &right.scope, kind, depth)),
        };
        let node = left.node.node(node);
        let mut identity = left.identity;
        let known = !identity.is_empty() && !right.identity.is_empty();
        identity.extend(right.identity);
        From { node, scope, identity: if known { identity } else { Vec::new() } }
    }

    fn join_condition(&mut self, left: &Scope, right: &Scope, kind: &str, depth: u32) -> Node {
        let types = self.types;
        let pairs: Vec<(String, String)> = left
            .columns
            .iter()
            .flat_map(|a| right.columns.iter().map(move |b| (a, b)))
            .filter(|(a, b)| a.ty == b.ty && types.info(a.ty).sorts)
            .map(|(a, b)| (a.sql.clone(), b.sql.clone()))
            .collect();
        let bool = types.named("bool").expect("bool is a type");
        let equal = pairs.choose(&mut self.rng).map(|(a, b)| Node::expr(bool).text(format!("{a} = {b}")));
        // PostgreSQL runs FULL JOIN on what it can hash or merge only.
        match equal {
            Some(equal) if kind != "FULL JOIN" && self.rng.random_bool(0.3) => {
                let both = joined(right, left);
                let more = self.condition(&both, depth.min(2));
                Node::new(Role::Fixed).node(equal).node(Node::optional(" AND ").node(more))
            }
            Some(equal) => equal,
            None if kind == "FULL JOIN" => Node::fixed("true"),
            None => self.condition(&joined(right, left), depth.min(2)),
        }
    }

    fn lateral(&mut self, left: From, depth: u32) -> From {
        let alias = self.alias();
        let inner_scope = left.scope.clone();
        let table = self.tables.choose(&mut self.rng).expect("there are tables").clone();
        let inner = self.alias();
        let columns = table.scope(&inner);
        let ty = self.column_type(&columns, false);
        let both = joined(&columns, &inner_scope);
        let value = self.expr(ty, &both, depth.min(2));
        let condition = self.condition(&both, depth.min(2));
        let limit = match self.rng.random_bool(0.5) {
            true => format!(" ORDER BY {inner}.id LIMIT {}", self.rng.random_range(0..4)),
            false => String::new(),
        };
        let kind = *["CROSS JOIN", "LEFT JOIN"].choose(&mut self.rng).expect("some");
        let on = if kind == "LEFT JOIN" { " ON true" } else { "" };
        let node = Node::optional(format!(" {kind} LATERAL (SELECT {inner}.id AS id, ")).node(value);
        let node = node.text(format!(" AS x FROM {} {inner} WHERE ", table.name)).node(condition);
        let node = node.node(Node::optional(limit)).text(format!(") {alias}{on}")).uses("clause LATERAL");
        let node = left.node.node(node);
        let mut scope = left.scope;
        let int4 = self.types.named("int4").expect("int4 is a type");
        scope.columns.push(ScopeColumn { sql: format!("{alias}.id"), ty: int4 });
        scope.columns.push(ScopeColumn { sql: format!("{alias}.x"), ty });
        let mut identity = left.identity;
        if !identity.is_empty() {
            identity.push(format!("{alias}.id"));
        }
        From { node, scope, identity }
    }

    /// A table, a view or a subquery with an alias.
    fn relation(&mut self, depth: u32) -> From {
        let alias = self.alias();
        if depth > 1 && self.rng.random_ratio(1, 7) {
            // A subquery in FROM sees nothing of what stands beside it.
            let inner = self.select(depth - 1);
            let scope = columns_of(&alias, &inner.columns);
            let node = Node::new(Role::Fixed).text("(").node(inner.node).text(format!(") {alias}"));
            return From { node: node.uses("clause FROM subquery"), scope, identity: Vec::new() };
        }
        let table = self.tables.choose(&mut self.rng).expect("there are tables").clone();
        let node = Node::fixed(format!("{} {alias}", table.name));
        From { node, scope: table.scope(&alias), identity: vec![format!("{alias}.id")] }
    }

    fn grouped(&mut self, depth: u32) -> Select {
        let from = self.from(depth);
        let types = self.types;
        let sorted: Vec<ScopeColumn> =
            from.scope.columns.iter().filter(|column| types.info(column.ty).sorts).cloned().collect();
        let count = self.rng.random_range(0..3_usize).min(sorted.len());
        let keys: Vec<ScopeColumn> = sorted.choose_multiple(&mut self.rng, count).cloned().collect();
        let mut leaves = Scope { columns: keys.clone() };
        let mut uses = Vec::new();
        for _ in 0..self.rng.random_range(1..4) {
            let ty = self.any_type(false);
            if let Some(call) = self.aggregate(ty, &from, depth.min(2)) {
                uses.extend(call.all_uses().iter().map(ToString::to_string));
                leaves.columns.push(ScopeColumn { sql: call.sql(), ty });
            }
        }
        let int8 = types.named("int8").expect("int8 is a type");
        leaves.columns.push(ScopeColumn { sql: "count(*)".into(), ty: int8 });
        let columns: Vec<Ty> = leaves.columns.iter().map(|column| column.ty).collect();
        let wrap = self.rng.random_bool(0.3);
        let items: Vec<Node> = leaves
            .columns
            .clone()
            .into_iter()
            .enumerate()
            .map(|(index, leaf)| {
                let value = match wrap {
                    true => self.expr(leaf.ty, &leaves, 1),
                    false => Node::expr(leaf.ty).text(leaf.sql),
                };
                Node::new(Role::Fixed).node(value).text(format!(" AS c{index}"))
            })
            .collect();
        let condition = self.optional_where(&from.scope.clone(), depth);
        let mut node =
            Node::fixed("SELECT ").shrinking_list(items, ", ").node(from.node).node(condition).uses("clause GROUP BY");
        node.uses.extend(uses);
        if !keys.is_empty() {
            node = node.node(self.group_by(&keys));
        }
        if self.rng.random_ratio(1, 4) {
            let having = self.condition(&leaves, depth.min(2));
            node = node.node(Node::optional(" HAVING ").node(having).uses("clause HAVING"));
        }
        let (node, ordered) = self.ordered(node, &columns);
        Select { node, columns, ordered }
    }

    fn group_by(&mut self, keys: &[ScopeColumn]) -> Node {
        let list = keys.iter().map(|key| key.sql.clone()).collect::<Vec<_>>().join(", ");
        let (text, uses) = match self.rng.random_range(0..9) {
            0 => (format!("ROLLUP ({list})"), "clause ROLLUP"),
            1 => (format!("CUBE ({list})"), "clause CUBE"),
            2 => (format!("GROUPING SETS (({list}), ({}), ())", keys[0].sql), "clause GROUPING SETS"),
            _ => (list, "clause GROUP BY"),
        };
        Node::fixed(format!(" GROUP BY {text}")).uses(uses)
    }

    /// An aggregate over the rows of a FROM clause.
    fn aggregate(&mut self, ty: Ty, from: &From, depth: u32) -> Option<Node> {
        let (catalog, types) = (self.catalog, self.types);
        let chosen = catalog.choose(types, ty, true, &mut self.rng)?;
        let name = chosen.callable.name.clone();
        let floats = chosen.args.iter().any(|arg| matches!(types.name(*arg), "float4" | "float8"));
        let collects = name.ends_with("_agg");
        if collects && from.identity.is_empty() {
            return None;
        }
        let label = chosen.callable.label.clone();
        // Sums of floats other than the columns' own would depend on the order of rows.
        let scope = from.scope.clone();
        let mut args = Vec::with_capacity(chosen.args.len());
        for arg in &chosen.args {
            args.push(if floats { self.expr(*arg, &from.scope, 0) } else { self.expr(*arg, &scope, depth) });
        }
        let exact = matches!(name.as_str(), "sum" | "avg" | "min" | "max" | "count");
        let rounded = floats && !exact && types.name(ty) == "float8";
        if floats && !exact && !rounded && types.name(ty) != "int8" {
            return None;
        }
        let mut node = Node::expr(ty).uses(label);
        node = if rounded { node.text("(round((") } else { node };
        node = node.text(format!("{name}("));
        let sorts = chosen.args.iter().all(|arg| types.info(*arg).sorts);
        if collects && sorts && args.len() == 1 && self.rng.random_ratio(1, 5) {
            node = node.text("DISTINCT ").list(args, ", ").uses("clause aggregate DISTINCT");
        } else if collects {
            node = node.list(args, ", ").text(format!(" ORDER BY {}{}", from.identity[0], self.direction()));
            node = from.identity[1..].iter().fold(node, |node, key| node.text(format!(", {key}")));
            node = node.uses("clause aggregate ORDER BY");
        } else {
            if sorts && args.len() == 1 && self.rng.random_ratio(1, 5) {
                node = node.text("DISTINCT ").uses("clause aggregate DISTINCT");
            }
            node = node.list(args, ", ");
        }
        node = node.text(")");
        if self.rng.random_ratio(1, 6) {
            let condition = self.condition(&scope, depth.min(1));
            node = node.node(Node::optional(" FILTER (WHERE ").node(condition).text(")").uses("clause FILTER"));
        }
        Some(if rounded { node.text(")::numeric, 6))::float8") } else { node })
    }

    fn windowed(&mut self, depth: u32) -> Select {
        let mut from = self.from(depth);
        if from.identity.is_empty() {
            let alias = self.alias();
            let table = self.tables.choose(&mut self.rng).expect("there are tables").clone();
            let node = Node::fixed(format!(" FROM {} {alias}", table.name));
            from = From { node, scope: table.scope(&alias), identity: vec![format!("{alias}.id")] };
        }
        let mut items = Vec::new();
        let mut columns = Vec::new();
        for _ in 0..self.rng.random_range(1..4) {
            if let Some((call, ty)) = self.window_call(&from, depth.min(2)) {
                items.push(Node::new(Role::Fixed).node(call).text(format!(" AS c{}", columns.len())));
                columns.push(ty);
            }
        }
        for key in from.identity.clone() {
            let int4 = self.types.named("int4").expect("int4 is a type");
            items.push(Node::fixed(format!("{key} AS c{}", columns.len())));
            columns.push(int4);
        }
        let condition = self.optional_where(&from.scope.clone(), depth);
        let node = Node::fixed("SELECT ").shrinking_list(items, ", ").node(from.node).node(condition);
        let (node, ordered) = self.ordered(node, &columns);
        Select { node, columns, ordered }
    }

    fn window_call(&mut self, from: &From, depth: u32) -> Option<(Node, Ty)> {
        let types = self.types;
        let named = |name: &str| types.named(name).expect("a type of the catalog");
        let scope = from.scope.clone();
        let choice = self.rng.random_range(0..12);
        let (call, ty, frame) = match choice {
            0 => (Node::fixed("row_number()"), named("int8"), false),
            1 => (Node::fixed("rank()"), named("int8"), false),
            2 => (Node::fixed("dense_rank()"), named("int8"), false),
            3 => (Node::fixed("percent_rank()"), named("float8"), false),
            4 => (Node::fixed("cume_dist()"), named("float8"), false),
            5 => (Node::fixed(format!("ntile({})", self.rng.random_range(1..6))), named("int4"), false),
            6 | 7 => {
                let ty = self.column_type(&from.scope, false);
                let name = if choice == 6 { "lag" } else { "lead" };
                let node = Node::fixed(format!("{name}(")).node(self.expr(ty, &scope, depth));
                let node = match self.rng.random_range(0..3) {
                    0 => node,
                    1 => node.text(format!(", {}", self.rng.random_range(-1..4_i32))),
                    _ => node.text(format!(", {}, ", self.rng.random_range(0..4))).node(self.expr(ty, &scope, 1)),
                };
                (node.text(")"), ty, false)
            }
            8 => {
                let ty = self.column_type(&from.scope, false);
                let name = *["first_value", "last_value", "nth_value"].choose(&mut self.rng)?;
                let node = Node::fixed(format!("{name}(")).node(self.expr(ty, &scope, depth));
                let node = match name {
                    "nth_value" => node.text(format!(", {}", self.rng.random_range(1..4))),
                    _ => node,
                };
                (node.text(")"), ty, true)
            }
            _ => {
                let ty = *[named("int8"), named("numeric"), self.any_type(true)].choose(&mut self.rng)?;
                let call = self.aggregate(ty, from, depth)?;
                let sql = call.sql();
                if ["ORDER BY", "DISTINCT", "round("].iter().any(|word| sql.contains(word)) {
                    return None;
                }
                (call, ty, true)
            }
        };
        let mut node = Node::expr(ty).node(call).text(" OVER (").uses("clause OVER");
        if self.rng.random_bool(0.5) {
            let key = self.compared_type(&from.scope);
            let key = self.expr(key, &from.scope, 0);
            node = node.node(Node::optional("PARTITION BY ").node(key).text(" ").uses("clause PARTITION BY"));
        }
        let mut keys = Vec::new();
        if self.rng.random_bool(0.4) {
            let key = self.compared_type(&from.scope);
            keys.push(format!("{}{}", self.expr(key, &from.scope, 0).sql(), self.direction()));
        }
        keys.extend(from.identity.iter().cloned());
        node = node.text(format!("ORDER BY {}", keys.join(", ")));
        if frame && self.rng.random_bool(0.6) {
            node = node.node(self.frame());
        }
        Some((node.text(")"), ty))
    }

    fn frame(&mut self) -> Node {
        let units = *["ROWS", "GROUPS", "RANGE"].choose(&mut self.rng).expect("some");
        let n = self.rng.random_range(0..4);
        let m = self.rng.random_range(0..4);
        let frames = match units {
            "RANGE" => vec![
                "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW".to_string(),
                "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING".to_string(),
                "UNBOUNDED PRECEDING".to_string(),
            ],
            _ => vec![
                format!("BETWEEN {n} PRECEDING AND {m} FOLLOWING"),
                format!("BETWEEN {n} PRECEDING AND CURRENT ROW"),
                format!("BETWEEN {n} FOLLOWING AND {} FOLLOWING", n + m),
                format!("BETWEEN UNBOUNDED PRECEDING AND {m} PRECEDING"),
                format!("{n} PRECEDING"),
            ],
        };
        let exclude = ["", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"];
        let exclude = exclude.choose(&mut self.rng).expect("some");
        let frame = frames.choose(&mut self.rng).expect("some");
        let node = Node::optional(format!(" {units} {frame}")).uses(format!("clause {units} frame"));
        node.node(Node::optional(*exclude).uses(if exclude.is_empty() { "clause frame" } else { "clause EXCLUDE" }))
    }

    fn set_operation(&mut self, depth: u32) -> Select {
        let columns: Vec<Ty> = (0..self.rng.random_range(1..4)).map(|_| self.any_type(true)).collect();
        let op = *["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
            .choose(&mut self.rng)
            .expect("some");
        let left = self.arm(&columns, depth);
        let right = self.arm(&columns, depth);
        let node = Node::new(Role::Fixed).text("(").node(left).text(format!(") {op} (")).node(right).text(")");
        let (node, ordered) = self.ordered(node.uses(format!("clause {op}")), &columns);
        Select { node, columns, ordered }
    }

    fn arm(&mut self, columns: &[Ty], depth: u32) -> Node {
        let from = self.from(depth.min(2));
        let inner = from.scope.clone();
        let items = self.items(columns, &inner, depth.min(2));
        let condition = self.optional_where(&inner, depth.min(2));
        Node::fixed("SELECT ").node(items).node(from.node).node(condition)
    }

    fn with(&mut self, depth: u32) -> Select {
        let name = self.alias();
        if self.rng.random_bool(0.35) {
            return self.recursive(&name, depth);
        }
        let inner = self.select(depth.min(2));
        let scope = columns_of(&name, &inner.columns);
        let columns: Vec<Ty> = (0..self.rng.random_range(1..4)).map(|_| self.column_type(&scope, false)).collect();
        let both = scope.clone();
        let items = self.items(&columns, &both, depth.min(2));
        let condition = self.optional_where(&both, depth.min(2));
        let how = *["", "MATERIALIZED ", "NOT MATERIALIZED "].choose(&mut self.rng).expect("some");
        let node = Node::fixed(format!("WITH {name} AS {how}(")).node(inner.node).text(") SELECT ").node(items);
        let node = node.text(format!(" FROM {name}")).node(condition).uses("clause WITH");
        let (node, ordered) = self.ordered(node, &columns);
        Select { node, columns, ordered }
    }

    fn recursive(&mut self, name: &str, depth: u32) -> Select {
        let int4 = self.types.named("int4").expect("int4 is a type");
        let ty = self.any_type(true);
        let start = self.expr(ty, &Scope::default(), depth.min(2));
        let scope = Scope { columns: vec![ScopeColumn { sql: format!("{name}.c1"), ty }] };
        let step = self.expr(ty, &scope.clone(), 2);
        let all = if self.rng.random() { " ALL" } else { "" };
        let end = self.rng.random_range(1..8);
        let node = Node::fixed(format!("WITH RECURSIVE {name}(c0, c1) AS (SELECT 1, ")).node(start);
        let node = node.text(format!(" UNION{all} SELECT c0 + 1, ")).node(step);
        let node = node.text(format!(" FROM {name} WHERE c0 < {end}) SELECT c0, c1 FROM {name}"));
        let columns = vec![int4, ty];
        let (node, ordered) = self.ordered(node.uses("clause WITH RECURSIVE"), &columns);
        Select { node, columns, ordered }
    }

    fn set_returning(&mut self, depth: u32) -> Select {
        let (catalog, types) = (self.catalog, self.types);
        let Some((chosen, ty)) = catalog.choose_set(types, &mut self.rng) else { return self.plain(depth) };
        let growing = chosen.callable.name.starts_with("generate_series");
        let mut args = Vec::new();
        for (index, arg) in chosen.args.iter().enumerate() {
            args.push(match (growing, types.name(*arg)) {
                (true, "int4" | "int8" | "numeric") => {
                    Node::expr(*arg).text(format!("{}::{}", self.rng.random_range(1..9_u32), types.name(*arg)))
                }
                (true, "interval") => Node::expr(*arg).text(format!("interval '{} days'", 3 + index)),
                (true, name) => Node::expr(*arg).text(format!("{name} '2024-01-{:02}'", 1 + 4 * index)),
                _ => self.expr(*arg, &Scope::default(), depth.min(2)),
            });
        }
        let call = Node::fixed(format!("{}(", chosen.callable.name)).list(args, ", ").text(")");
        let call = call.uses(chosen.callable.label.clone());
        let node = match self.rng.random_range(0..3) {
            0 => Node::fixed("SELECT ").node(call).text(" AS c0"),
            1 => Node::fixed("SELECT * FROM ").node(call).text(" AS f(c0)"),
            _ => {
                let node = Node::fixed("SELECT c0, n FROM ").node(call).text(" WITH ORDINALITY AS f(c0, n)");
                let int8 = types.named("int8").expect("int8 is a type");
                let node = node.uses("clause WITH ORDINALITY");
                // The second column bears no name that others could refer to.
                return Select { node, columns: vec![ty, int8], ordered: false }.renamed();
            }
        };
        Select { node, columns: vec![ty], ordered: false }
    }

    /// `SELECT` of one column, correlated with what is outside.
    pub fn inner_select(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Option<Node> {
        let alias = self.alias();
        let table = self.tables.choose(&mut self.rng)?.clone();
        let own = table.scope(&alias);
        let both = match self.rng.random_bool(0.6) {
            true => joined(&own, scope),
            false => own.clone(),
        };
        let value = self.expr(ty, &own, depth.min(2) - 1);
        let condition = self.condition(&both, depth.min(2) - 1);
        let node = Node::fixed("SELECT ").node(value).text(format!(" FROM {} {alias}", table.name));
        Some(node.node(Node::optional(" WHERE ").node(condition)))
    }

    pub fn scalar_select(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Option<Node> {
        let alias = self.alias();
        let table = self.tables.choose(&mut self.rng)?.clone();
        let own = table.scope(&alias);
        if self.rng.random_bool(0.4) {
            let value = self.expr(ty, &own, 0);
            let int4 = self.types.named("int4")?;
            let key = self.expr(int4, scope, 0);
            let node =
                Node::fixed("SELECT ").node(value).text(format!(" FROM {} {alias} WHERE {alias}.id = ", table.name));
            return Some(node.node(key));
        }
        let identity = vec![format!("{alias}.id")];
        let from = From { node: Node::new(Role::Fixed), scope: own.clone(), identity };
        let call = self.aggregate(ty, &from, 1)?;
        let both = if self.rng.random_bool(0.6) { joined(&own, scope) } else { own };
        let condition = self.condition(&both, depth.min(2) - 1);
        let node = Node::fixed("SELECT ").node(call).text(format!(" FROM {} {alias}", table.name));
        Some(node.node(Node::optional(" WHERE ").node(condition)))
    }

    /// A name that the statement does not have yet.
    pub fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("r{}", self.aliases)
    }
}

impl Select {
    /// Its second column is called as others expect it.
    fn renamed(mut self) -> Select {
        let node = std::mem::replace(&mut self.node, Node::new(Role::Fixed));
        self.node = Node::fixed("SELECT c0, n AS c1 FROM (").node(node).text(") s");
        self
    }
}

fn names(count: usize) -> String {
    (0..count).map(|index| format!("c{index}")).collect::<Vec<_>>().join(", ")
}

fn columns_of(alias: &str, columns: &[Ty]) -> Scope {
    let columns = columns.iter().enumerate();
    Scope { columns: columns.map(|(index, ty)| ScopeColumn { sql: format!("{alias}.c{index}"), ty: *ty }).collect() }
}

/// Own columns, and those of the outer query.
fn joined(own: &Scope, outer: &Scope) -> Scope {
    Scope { columns: own.columns.iter().chain(&outer.columns).cloned().collect() }
}
