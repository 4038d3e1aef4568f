//! A statement as a tree of text, so that a failing one can be made smaller without knowing SQL.

use super::types::Ty;

/// What may be done to a node while its statement shrinks.
#[derive(Clone, PartialEq, Debug)]
pub enum Role {
    /// Stays as it is.
    Fixed,
    /// May vanish.
    Optional,
    /// An expression: one of the same type may stand in its place.
    Expr(Ty),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Piece {
    Text(String),
    Node(Node),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub pieces: Vec<Piece>,
    pub role: Role,
    /// What it exercises: `function lower(text)`, `clause HAVING`.
    pub uses: Vec<String>,
}

impl Node {
    pub fn new(role: Role) -> Node {
        Node { pieces: Vec::new(), role, uses: Vec::new() }
    }

    pub fn fixed(text: impl Into<String>) -> Node {
        Node::new(Role::Fixed).text(text)
    }

    pub fn expr(ty: Ty) -> Node {
        Node::new(Role::Expr(ty))
    }

    pub fn optional(text: impl Into<String>) -> Node {
        Node::new(Role::Optional).text(text)
    }

    pub fn text(mut self, text: impl Into<String>) -> Node {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    pub fn node(mut self, node: Node) -> Node {
        self.pieces.push(Piece::Node(node));
        self
    }

    pub fn uses(mut self, what: impl Into<String>) -> Node {
        self.uses.push(what.into());
        self
    }

    /// Nodes with a separator between them.
    pub fn list(mut self, nodes: impl IntoIterator<Item = Node>, separator: &str) -> Node {
        for (index, node) in nodes.into_iter().enumerate() {
            if index > 0 {
                self.pieces.push(Piece::Text(separator.into()));
            }
            self.pieces.push(Piece::Node(node));
        }
        self
    }

    /// A list all of whose members but the first may vanish.
    pub fn shrinking_list(self, nodes: impl IntoIterator<Item = Node>, separator: &str) -> Node {
        nodes.into_iter().enumerate().fold(self, |list, (index, node)| match index {
            0 => list.node(node),
            _ => list.node(Node::optional(separator).node(node)),
        })
    }

    pub fn sql(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Node(node) => node.write(out),
            }
        }
    }

    /// All that the tree exercises.
    pub fn all_uses(&self) -> Vec<&str> {
        let mut out: Vec<&str> = self.uses.iter().map(String::as_str).collect();
        for piece in &self.pieces {
            if let Piece::Node(node) = piece {
                out.extend(node.all_uses());
            }
        }
        out
    }

    fn children(&self) -> impl Iterator<Item = &Node> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Node(node) => Some(node),
            Piece::Text(_) => None,
        })
    }

    /// Every tree that is one step smaller, the boldest steps first.
    pub fn smaller(&self, simple: &dyn Fn(Ty) -> String) -> Vec<Node> {
        let mut out = Vec::new();
        match &self.role {
            Role::Optional if !self.pieces.is_empty() => out.push(Node::new(Role::Fixed)),
            Role::Expr(ty) => {
                for inner in self.expressions(*ty) {
                    out.push(inner.clone());
                }
                let simple = simple(*ty);
                if !self.pieces.is_empty() && self.sql() != simple {
                    out.push(Node::fixed(simple));
                }
            }
            Role::Fixed | Role::Optional => {}
        }
        for (index, piece) in self.pieces.iter().enumerate() {
            let Piece::Node(child) = piece else { continue };
            for smaller in child.smaller(simple) {
                let mut copy = self.clone();
                copy.pieces[index] = Piece::Node(smaller);
                out.push(copy);
            }
        }
        out
    }

    /// Expressions of this type below, those nearest first, none inside of another.
    fn expressions(&self, ty: Ty) -> Vec<&Node> {
        let mut out = Vec::new();
        for child in self.children() {
            match child.role {
                Role::Expr(inner) if inner == ty => out.push(child),
                _ => out.extend(child.expressions(ty)),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests;
