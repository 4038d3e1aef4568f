//! Expressions of a wanted type.

use super::Generator;
use super::catalog::{Chosen, Kind};
use super::literals::literal;
use super::node::Node;
use super::types::Ty;
use rand::Rng;
use rand::seq::IndexedRandom;

/// What an expression may refer to.
#[derive(Clone, Default, Debug)]
pub struct Scope {
    pub columns: Vec<ScopeColumn>,
}

#[derive(Clone, Debug)]
pub struct ScopeColumn {
    pub sql: String,
    pub ty: Ty,
}

impl Scope {
    pub fn of(&self, ty: Ty) -> Vec<&ScopeColumn> {
        self.columns.iter().filter(|column| column.ty == ty).collect()
    }
}

/// Functions whose result grows with a number: it stays a small literal.
const GROWING: [&str; 9] =
    ["repeat", "lpad", "rpad", "array_fill", "generate_series", "factorial", "trim_scale", "!!", "power"];

impl Generator<'_> {
    /// A type to make an expression of.
    pub fn any_type(&mut self, sorts: bool) -> Ty {
        let types = self.types;
        let usable: Vec<Ty> = types.usable().filter(|ty| !sorts || types.info(*ty).sorts).collect();
        let chosen = usable.choose_weighted(&mut self.rng, |ty| types.info(*ty).weight);
        *chosen.unwrap_or(&usable[0])
    }

    pub fn expr(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Node {
        let columns = scope.of(ty);
        if !columns.is_empty() && self.rng.random_bool(if depth == 0 { 0.85 } else { 0.35 }) {
            let column = columns.choose(&mut self.rng).expect("not empty");
            return Node::expr(ty).text(column.sql.clone());
        }
        if depth == 0 {
            return self.literal(ty);
        }
        let node = match self.rng.random_range(0..20) {
            0..=10 => self.called(ty, scope, depth),
            11 => Some(self.case(ty, scope, depth)),
            12 => Some(self.coalesce(ty, scope, depth)),
            13 => self.subquery(ty, scope, depth),
            14 | 15 if self.types.info(ty).element.is_some() => Some(self.array(ty, scope, depth)),
            14..=17 if self.types.name(ty) == "bool" => Some(self.condition(scope, depth)),
            16 => self.element(ty, scope, depth),
            _ => None,
        };
        node.unwrap_or_else(|| self.literal(ty))
    }

    pub fn literal(&mut self, ty: Ty) -> Node {
        Node::expr(ty).text(literal(self.types, ty, &mut self.rng)).uses(format!("type {}", self.types.name(ty)))
    }

    /// An operator, function or cast that gives `ty`.
    fn called(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Option<Node> {
        let (catalog, types) = (self.catalog, self.types);
        let Chosen { callable, args } = catalog.choose(types, ty, false, &mut self.rng)?;
        let growing = GROWING.contains(&callable.name.as_str());
        let mut operands = Vec::with_capacity(args.len());
        for (index, arg) in args.iter().enumerate() {
            let integer = matches!(types.name(*arg), "int2" | "int4" | "int8" | "numeric");
            let fitting = super::fitting::values(&callable.name, index, types.name(*arg));
            let fitting = if self.rng.random_bool(0.95) { fitting.choose(&mut self.rng) } else { None };
            let operand = if let Some(value) = fitting {
                Node::expr(*arg).text(format!("'{value}'::{}", types.name(*arg)))
            } else if growing && integer && index > 0 || growing && args.len() == 1 {
                Node::expr(*arg).text(format!("{}::{}", self.rng.random_range(0..9_u32), types.name(*arg)))
            } else {
                self.expr(*arg, scope, depth - 1)
            };
            let divisor = matches!(callable.name.as_str(), "/" | "%" | "div" | "mod") && index == 1;
            operands.push(match divisor && types.info(*arg).sorts && self.rng.random_bool(0.9) {
                true => Node::expr(*arg).text("nullif(").node(operand).text(format!(", '0'::{})", types.name(*arg))),
                false => operand,
            });
        }
        let node = Node::expr(ty).uses(callable.label.clone());
        let mut operands = operands.into_iter();
        Some(match callable.kind {
            Kind::Prefix => node.text(format!("({} ", callable.name)).node(operands.next()?).text(")"),
            Kind::Infix => {
                let left = operands.next()?;
                node.text("(").node(left).text(format!(" {} ", callable.name)).node(operands.next()?).text(")")
            }
            Kind::Cast if self.rng.random_bool(0.3) => {
                node.text("CAST(").node(operands.next()?).text(format!(" AS {})", types.name(ty)))
            }
            Kind::Cast => node.text("(").node(operands.next()?).text(format!(")::{}", types.name(ty))),
            Kind::Function | Kind::SetFunction | Kind::Aggregate => {
                node.text(format!("{}(", as_called(&callable.name))).list(operands, ", ").text(")")
            }
        })
    }

    fn case(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Node {
        let mut node = Node::expr(ty).text("CASE").uses("clause CASE");
        let operand = self.rng.random_bool(0.3).then(|| self.any_type(true));
        if let Some(operand) = operand {
            node = node.text(" ").node(self.expr(operand, scope, depth - 1));
        }
        for _ in 0..self.rng.random_range(1..3) {
            let when = match operand {
                Some(operand) => self.expr(operand, scope, depth - 1),
                None => self.condition(scope, depth - 1),
            };
            let then = self.expr(ty, scope, depth - 1);
            node = node.text(" WHEN ").node(when).text(" THEN ").node(then);
        }
        if self.rng.random_bool(0.6) {
            let otherwise = self.expr(ty, scope, depth - 1);
            node = node.node(Node::optional(" ELSE ").node(otherwise));
        }
        node.text(" END")
    }

    fn coalesce(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Node {
        let name = match self.types.info(ty).sorts {
            true => *["coalesce", "nullif", "greatest", "least"].choose(&mut self.rng).expect("some"),
            false => "coalesce",
        };
        let count = if name == "nullif" { 2 } else { self.rng.random_range(1..4) };
        let args: Vec<Node> = (0..count).map(|_| self.expr(ty, scope, depth - 1)).collect();
        Node::expr(ty).text(format!("{name}(")).list(args, ", ").text(")").uses(format!("clause {name}"))
    }

    fn array(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Node {
        let element = self.types.info(ty).element.expect("an array has elements");
        let count = self.rng.random_range(1..4);
        let elements: Vec<Node> = (0..count).map(|_| self.expr(element, scope, depth - 1)).collect();
        Node::expr(ty).text("ARRAY[").shrinking_list(elements, ", ").text("]").uses("clause ARRAY[]")
    }

    /// An element of an array.
    fn element(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Option<Node> {
        let array = self.types.array_of(ty)?;
        let array = self.expr(array, scope, depth - 1);
        let index = self.rng.random_range(0..4_i32);
        Some(Node::expr(ty).text("(").node(array).text(format!(")[{index}]")).uses("clause subscript"))
    }

    /// Something true or false.
    pub fn condition(&mut self, scope: &Scope, depth: u32) -> Node {
        let bool = self.types.named("bool").expect("bool is a type");
        if depth == 0 {
            return self.expr(bool, scope, 0);
        }
        let node = Node::expr(bool);
        match self.rng.random_range(0..16) {
            0..=4 => {
                let ty = self.compared_type(scope);
                let op = *["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
                    .choose(&mut self.rng)
                    .expect("some");
                let (left, right) = (self.expr(ty, scope, depth - 1), self.expr(ty, scope, depth - 1));
                let label = format!("operator {0} {op} {0}", self.types.name(ty));
                node.text("(").node(left).text(format!(" {op} ")).node(right).text(")").uses(label)
            }
            5 | 6 => {
                let op = *[" AND ", " OR "].choose(&mut self.rng).expect("some");
                let (left, right) = (self.condition(scope, depth - 1), self.condition(scope, depth - 1));
                node.text("(").node(left).text(op).node(right).text(")").uses(format!("clause{op}").trim_end())
            }
            7 => node.text("(NOT ").node(self.condition(scope, depth - 1)).text(")").uses("clause NOT"),
            8 => {
                let ty = self.any_type(false);
                let test = *["IS NULL", "IS NOT NULL"].choose(&mut self.rng).expect("some");
                node.text("(").node(self.expr(ty, scope, depth - 1)).text(format!(" {test})")).uses("clause IS NULL")
            }
            9 => {
                let tests = ["IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN"];
                let test = *tests.choose(&mut self.rng).expect("some");
                let operand = self.condition(scope, depth - 1);
                node.text("(").node(operand).text(format!(" {test})")).uses(format!("clause {test}"))
            }
            10 => {
                let ty = self.compared_type(scope);
                let words = *["BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"].choose(&mut self.rng).expect("some");
                let all: Vec<Node> = (0..3).map(|_| self.expr(ty, scope, depth - 1)).collect();
                let [value, low, high] = <[Node; 3]>::try_from(all).expect("three");
                let node = node.text("(").node(value).text(format!(" {words} ")).node(low).text(" AND ");
                node.node(high).text(")").uses(format!("clause {words}"))
            }
            11 | 12 => {
                let ty = self.compared_type(scope);
                let words = *["IN", "NOT IN"].choose(&mut self.rng).expect("some");
                let value = self.expr(ty, scope, depth - 1);
                let list: Vec<Node> = (0..self.rng.random_range(1..5)).map(|_| self.expr(ty, scope, 0)).collect();
                let node = node.text("(").node(value).text(format!(" {words} ("));
                node.shrinking_list(list, ", ").text("))").uses(format!("clause {words} list"))
            }
            13 => self.quantified(scope, depth).unwrap_or_else(|| self.expr(bool, scope, depth - 1)),
            14 => {
                let text = self.types.named("text").expect("text is a type");
                let op = *["LIKE", "NOT LIKE", "ILIKE", "SIMILAR TO"].choose(&mut self.rng).expect("some");
                let pattern = *["%a%", "a%", "_", "%", "b_", "%\\%%", "A%"].choose(&mut self.rng).expect("some");
                let value = self.expr(text, scope, depth - 1);
                node.text("(").node(value).text(format!(" {op} '{pattern}')")).uses(format!("clause {op}"))
            }
            _ => self.expr(bool, scope, depth - 1),
        }
    }

    /// A type with an order, rather one that a column of the scope has.
    pub fn compared_type(&mut self, scope: &Scope) -> Ty {
        let types = self.types;
        let sorted: Vec<Ty> = scope.columns.iter().map(|column| column.ty).filter(|ty| types.info(*ty).sorts).collect();
        match sorted.choose(&mut self.rng) {
            Some(ty) if self.rng.random_bool(0.8) => *ty,
            _ => self.any_type(true),
        }
    }

    fn quantified(&mut self, scope: &Scope, depth: u32) -> Option<Node> {
        let bool = self.types.named("bool")?;
        let ty = self.compared_type(scope);
        let value = self.expr(ty, scope, depth - 1);
        let form = self.rng.random_range(0..4);
        if form == 0 {
            let array = self.types.array_of(ty)?;
            let words = *["= ANY", "<> ALL", "< ANY", ">= ALL"].choose(&mut self.rng)?;
            let array = self.expr(array, scope, depth - 1);
            let node = Node::expr(bool).text("(").node(value).text(format!(" {words} (")).node(array).text("))");
            return Some(node.uses(format!("clause {words} array")));
        }
        let inner = self.inner_select(ty, scope, depth)?;
        let (words, uses) = match form {
            1 => ("EXISTS", "clause EXISTS".to_string()),
            2 => {
                let words = *["IN", "NOT IN"].choose(&mut self.rng)?;
                (words, format!("clause {words} subquery"))
            }
            _ => {
                let words = *["= ANY", "<> ALL", "> ANY", "<= ALL"].choose(&mut self.rng)?;
                (words, format!("clause {words} subquery"))
            }
        };
        let node = Node::expr(bool).text("(");
        let node = if words == "EXISTS" { node } else { node.node(value).text(" ") };
        Some(node.text(format!("{words} (")).node(inner).text("))").uses(uses))
    }

    /// One value from a subquery, by an aggregate or by a key.
    fn subquery(&mut self, ty: Ty, scope: &Scope, depth: u32) -> Option<Node> {
        let inner = self.scalar_select(ty, scope, depth)?;
        Some(Node::expr(ty).text("(").node(inner).text(")").uses("clause scalar subquery"))
    }
}

/// A function's name where one that is also a type's in the grammar needs quotes.
fn as_called(name: &str) -> String {
    match name {
        "timestamp" | "time" | "interval" | "char" | "bit" => format!("\"{name}\""),
        plain => plain.to_string(),
    }
}
